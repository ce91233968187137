"""What users may choose, each choice declared once: flags, keywords, options of passes, keys and documents follow."""
