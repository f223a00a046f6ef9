"""How far graders agree with people: what is asked, what is measured, and the card that says so."""
