"""Options of users, each declared once: flags, keywords, options of passes, keys and documents follow from these."""
