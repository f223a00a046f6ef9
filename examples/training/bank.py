"""An environment with a tool: how much money a model saves is what it earns."""

from assay import Environment

env = Environment("bank")
account = env.state(dict[str, int])


@env.tool
def deposit(euros: int) -> str:
    """Put money into the account.

    Args:
        euros: How many; more than 0.
    """
    if euros <= 0:
        raise ValueError("it must be more than 0")
    account()["balance"] = account().get("balance", 0) + euros
    return f"The balance is {account()['balance']}."


@env.template()
async def save(goal: int = 100):
    """Save money."""
    yield f"Save {goal} euros."
    if goal == 13:
        raise RuntimeError("this bank has no account 13")
    yield min(1.0, account().get("balance", 0) / goal)
