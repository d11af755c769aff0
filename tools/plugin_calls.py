"""What the plugin sends to the agent and is answered, for benchmarks that must not start a process per call."""

from podtide.agent.api.plugin_protocol import decode_answer, encode_call

CONFIGURATION = b'{"cniVersion": "1.1.0", "name": "pods", "type": "ptp", "ipam": {"type": "podtide"}}'


def request(verb: str, sandbox: str, *, pod: str, uid: str) -> bytes:
    """The whole request for a sandbox of a pod in the namespace `default`: one per connection."""
    call = body(verb, sandbox, pod=pod, uid=uid)
    return f"POST /cni HTTP/1.0\r\nContent-Length: {len(call)}\r\n\r\n".encode() + call


def body(verb: str, sandbox: str, *, pod: str, uid: str, configuration: bytes = CONFIGURATION) -> bytes:
    """The body of such a request."""
    environment = {
        "CNI_COMMAND": verb,
        "CNI_CONTAINERID": sandbox,
        "CNI_NETNS": f"/var/run/netns/{sandbox}",
        "CNI_IFNAME": "eth0",
        "CNI_PATH": "/opt/cni/bin",
        "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME={pod};K8S_POD_UID={uid}",
    }
    return encode_call(environment, configuration)


def output(response: bytes) -> bytes:
    """What the plugin would print, of a call that must have succeeded."""
    answer = decode_answer(response.partition(b"\r\n\r\n")[2])
    assert answer is not None, f"the agent broke off: {response!r}"
    assert answer.exit_status == 0, answer.output
    return answer.output
