/* SPDX-License-Identifier: MIT */
#include "surroundings.h"

#include <pthread.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

sw_surroundings sw_surroundings_enter(void)
{
    sw_surroundings outside;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &outside.cancel_state);
    fegetenv(&outside.floating);
    fesetenv(FE_DFL_ENV);
#ifdef __SSE__
    _mm_setcsr(0x1f80); /* the default that a program starts with: C's says nothing of denormals */
#endif
    return outside;
}

void sw_surroundings_leave(sw_surroundings *outside)
{
    fesetenv(&outside->floating);
    pthread_setcancelstate(outside->cancel_state, NULL);
}
