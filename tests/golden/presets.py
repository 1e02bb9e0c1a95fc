# SPDX-License-Identifier: MIT
"""The published configurations of Swin Transformers, as every package is asked to build them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Preset:
    name: str
    version: int
    embed: int
    depths: tuple
    heads: tuple
    window: int
    image: int
    pretrained: int = 0  # V2: the window of pre-training, 0 where it is the window itself
    block_norm: int = 0  # V2: every n-th block ends in a norm

    def stage_windows(self):
        """Microsoft's rule at the native size: a map not larger than the window is one window."""
        return [min(self.window, self.image // (4 << s)) for s in range(4)]

    def stage_pretrained(self):
        """V2: the window of each stage when it was trained at its own native size."""
        if not self.pretrained:
            return [0, 0, 0, 0]
        image = {12: 192}[self.pretrained]
        return [min(self.pretrained, image // (4 << s)) for s in range(4)]


SIZES = {
    "tiny": (96, (2, 2, 6, 2), (3, 6, 12, 24)),
    "small": (96, (2, 2, 18, 2), (3, 6, 12, 24)),
    "base": (128, (2, 2, 18, 2), (4, 8, 16, 32)),
    "large": (192, (2, 2, 18, 2), (6, 12, 24, 48)),
}

V1 = [Preset(f"swin_{size}_patch4_window{window}_{image}", 1, *SIZES[size], window, image)
      for window, image in ((7, 224), (12, 384)) for size in SIZES]

V2 = ([Preset(f"swinv2_{size}_patch4_window{window}_256", 2, *SIZES[size], window, 256)
       for window in (8, 16) for size in ("tiny", "small", "base")]
      + [Preset(f"swinv2_{size}_patch4_window{name}", 2, *SIZES[size], window, image, pretrained)
         for name, window, image, pretrained in (("12_192", 12, 192, 0), ("12to16_192to256", 16, 256, 12),
                                                 ("12to24_192to384", 24, 384, 12))
         for size in ("base", "large")])

HUGE = Preset("swinv2_huge_patch4_window12_192", 2, 352, (2, 2, 18, 2), (8, 16, 32, 64), 12, 192, block_norm=6)
