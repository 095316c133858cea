"""The keys that the simulated vendors accept."""

SANDBOX_KEYS: dict[str, str] = {
    "OPENAI_API_KEY": "sandbox-openai",
    "ANTHROPIC_API_KEY": "sandbox-anthropic",
    "GEMINI_API_KEY": "sandbox-google",
    "MINIMAX_API_KEY": "sandbox-minimax",
    "ELEVENLABS_API_KEY": "sandbox-elevenlabs",
    "AWS_BEARER_TOKEN_BEDROCK": "sandbox-aws",
    "RUNPOD_API_KEY": "sandbox-runpod",
    "COHERE_API_KEY": "sandbox-cohere",
    "VOYAGE_API_KEY": "sandbox-voyage",
}
"""The only key that each simulated vendor accepts, by its conventional environment variable."""
