"""A support desk: eight questions of customers, graded by three comparisons."""

from __future__ import annotations

import json
from pathlib import Path

# By case: what is asked, the amount it comes to, the word that the reply needs.
CASES: dict[str, tuple[str, float, str]] = {
    "refund-fee": ("One of three lamps at 24.50 comes back; we keep a fee of 5.", 19.5, "lamp"),
    "late-parcel": ("A parcel of 80.00 was 9 days late: a tenth is given back.", 8.0, "parcel"),
    "double-charge": ("A card was charged 49.90 twice for one order.", 49.9, "card"),
    "price-match": ("Bought at 129.00, seen for 118.50 the next day.", 10.5, "price"),
    "broken-desk": ("A desk of 210.00 arrived broken; half is refunded.", 105.0, "desk"),
    "gift-voucher": ("A voucher of 50.00 was used for 32.20. What is left?", 17.8, "voucher"),
    "wrong-size": ("Shoes of 64.00 go back, the return label costs 4.50.", 59.5, "shoes"),
    "cancelled-plan": ("A plan of 12.00 a month is ended after 3 of 12 months.", 108.0, "plan"),
}


def write_cases(home: Path) -> None:
    """Write a case of each into `evals`."""
    for name, (asked, amount, word) in CASES.items():
        case = {
            "id": name,
            "task": {
                "prompt": f"{asked} How much does the customer get? Reply in a sentence or two, "
                "and give the amount on a last line of its own."
            },
            "expected": amount,
            "graders": [
                {"type": "numeric_match", "name": "amount", "pick": "last", "weight": 6},
                {"type": "contains", "name": "names-it", "substring": word, "weight": 2},
                {"type": "regex_match", "name": "form", "pattern": r"\n[0-9]+\.[0-9]{2}$",
                 "weight": 2},
            ],
        }  # fmt: skip
        file = home / "evals" / name / "case.yaml"
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(case), "utf-8")
