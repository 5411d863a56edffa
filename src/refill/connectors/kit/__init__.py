"""What connectors are made with: the contract, the registry, and what several systems share."""
