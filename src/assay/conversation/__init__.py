"""What is said to a model and what it says, in any protocol; how it is sent is not known here."""
