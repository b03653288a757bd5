"""Window of the spectra that noise is estimated from."""

# The square of a Hann window. Its leakage falls by 30 dB per octave, so that a motion without noise leaks hardly more
# than rounding into the upper half of the band.
LITTLE_LEAKAGE = ("general_cosine", (3 / 8, 1 / 2, 1 / 8))
