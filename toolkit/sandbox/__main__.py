"""Serves the vendor cloud on loopback: `python -m toolkit.sandbox --port 9000`."""

import argparse


def main() -> None:
    """Read the command line and serve until interrupted."""
    try:
        import uvicorn
    except ImportError:
        raise SystemExit("This needs an extra: pip install 'capability-toolkit[server]'.") from None

    from toolkit.assembly import list_compatible_vendors
    from toolkit.engine import Registry
    from toolkit.sandbox import VENDOR_PATHS, create_app

    parser = argparse.ArgumentParser(prog="python -m toolkit.sandbox", description=__doc__)
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--latency-ms", type=float, default=0.0)
    args = parser.parse_args()
    compatible = list_compatible_vendors(Registry.load())
    for wire, path in (VENDOR_PATHS | {vendor.id: vendor.path for vendor in compatible}).items():
        print(f"{wire:<17} http://127.0.0.1:{args.port}{path}")
    app = create_app(args.seed, latency_ms=args.latency_ms, compatible=compatible)
    uvicorn.run(app, host="127.0.0.1", port=args.port, log_level="warning")


if __name__ == "__main__":
    main()
