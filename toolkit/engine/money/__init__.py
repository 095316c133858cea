"""Money: budgets, allowances, reservations and the bill of a call."""
