// A library without code: only its name, and what it needs, matter.
