"""How one parameter is known, in plain words."""

from dataclasses import dataclass

IDENTIFIED, COMBINED, PRIOR = "identified", "identified only in combination", "left at the prior"
VERDICTS = (PRIOR, COMBINED, IDENTIFIED)  # from the least known to the best


@dataclass(frozen=True)
class Identifiability:
    """Identifiability of one standard parameter.

    Attributes
    ----------
    parameter : str
        Its name in the layout.
    verdict : str
        :data:`IDENTIFIED`, :data:`COMBINED` or :data:`PRIOR`.
    combinations : tuple of str
        Base parameters that the data determines and that it matters in, most first; of itself where it is identified.
    share : float
        Of the prior variance that the data takes away, 0 to 1, from the best known base parameter that this one matters
        in.
    """

    parameter: str
    verdict: str
    combinations: tuple[str, ...]
    share: float

    def __str__(self) -> str:
        which = f" {self.combinations[0]}" if self.verdict == COMBINED else ""
        return f"{self.parameter}: {self.verdict}{which}"
