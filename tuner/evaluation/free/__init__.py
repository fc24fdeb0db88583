"""Free parameters: one answer of the system tells what every value of them is worth."""
