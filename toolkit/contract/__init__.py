"""The wire contract of `/v1`: one module a resource, ids, the error enum and the envelope.

Everything above imports from here and nothing here imports our other packages. Requests are strict
(unknown fields are rejected), records are lenient (unknown fields are ignored), as the
specification's section "Response envelope" and its decisions ask.
"""
