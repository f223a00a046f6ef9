"""Cases proven before they are used: trials with rules, and how tests are isolated."""
