"""Tables of any kind: opened, understood column by column, and turned into tensors."""
