"""Making evaluation sets: from query logs judged by people, and from a knowledge graph."""
