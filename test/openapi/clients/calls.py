"""Makes calls by the generated client against a running controller: calls.py <address>.

Each must be answered by the envelope or the content that the document describes.
"""

import importlib
import io
import pkgutil
import sys
import typing

import httpx

from odp_client import Client, api
from odp_client.models import Problem, SignIn
from odp_client.types import File, Unset

CLIENT = Client(
    base_url=sys.argv[1],
    headers={"Accept": "application/problem+json"},
    httpx_args={"auth": httpx.BasicAuth("matrix.admin", "-")},
    raise_on_unexpected_status=True,
)
CALLS = 0


def file(text: str, name: str = "example.txt") -> File:
    return File(payload=io.BytesIO(text.encode()), file_name=name)


def body_of(module, members):
    """The body of an operation: a file, or the model that its function takes."""
    if isinstance(members, File):
        return members
    hint = typing.get_type_hints(module._get_kwargs)["body"]
    [model] = [one for one in (typing.get_args(hint) or (hint,)) if one is not Unset]
    files = {name: value for name, value in members.items() if name == "uploadfile"}
    # The model reads bytes from JSON; it takes a named file as its attribute.
    empty = {name: [] if isinstance(value, list) else b"" for name, value in files.items()}
    body = model.from_dict({**members, **empty})
    for name, value in files.items():
        setattr(body, name, value)
    return body


MODULES = {name.rsplit(".", 1)[1]: name for _, name, _ in pkgutil.walk_packages(api.__path__, "odp_client.api.")}


def call(operation, *path, body=None, **query):
    global CALLS
    module = importlib.import_module(MODULES[operation])
    given = {} if body is None else {"body": body_of(module, body)}
    answer = module.sync_detailed(*path, client=CLIENT, **given, **query)
    if answer.status_code != 200 or answer.parsed is None or isinstance(answer.parsed, (Problem, SignIn)):
        sys.exit(f"{operation}{path}: {answer.status_code} {answer.content[:500]!r}")
    CALLS += 1
    return answer.parsed


def equal(found, expected):
    if found != expected:
        sys.exit(f"found {found!r} instead of {expected!r}")


VISITS, RULE, MAIL = "/matrix/visit", "/matrix/rules/visit", "/matrix/etc/mail"

fields = [{"name": "page", "type": "varchar", "iskey": True}, {"name": "status", "type": "int"}]
call("post_mxobject_schema_class", body={"class": VISITS, "fields": fields})
call("post_mxobject_mql", body=file("insert into /matrix/visit page='/start', status=200"))
rows = call("get_mxobject_mql", mql=f"select page from {VISITS}")
equal([row.additional_properties["page"] for row in rows.message], ["/start"])
call("get_mxobject_search", cond=f"#{VISITS}: start")
equal(b"/start" in call("get_mxobject_export", class_=VISITS), True)
call("get_mxobject_schema_class", class_=VISITS)
call("get_mxobject_schema_class_list")
call("get_mxobject_schema_class_fields", id=VISITS)

call("put_mxobject_rule", body={"key": RULE, "value": f"--class={VISITS}\n--parser=csv\n--fields=page,status"})
call("get_mxobject_rule")
call("post_mxobject_rule_try", body={"key": RULE, "lines": ["/a,1"]})
call("post_monitoring_policy_extend_by_path", "matrix/rules/visit", body=file("key:/start\tsite:north\n"))
equal(call("get_monitoring_policy_extend_by_path", "matrix/rules/visit").message, "key:/start\tsite:north\n")
call("post_agent", body=file("/about,404\n"), rule=RULE)

call("post_config_set", body={"key": MAIL, "value": "smtp.example.com"})
equal(call("get_config_get", key=MAIL).message.value, "smtp.example.com")
call("get_config_list", key="/matrix/etc")
call("get_config_history", key=MAIL)
call("get_config_export", key="/matrix/etc")

# The generated client sends a slash of a path as %2F.
call("put_fs_by_path", "reports/spring/day.txt", body={"data": "quiet\n"})
equal(call("get_fs_by_path", "reports/spring/day.txt").payload.read(), b"quiet\n")
equal(call("get_static_by_path", "reports/spring/day.txt").payload.read(), b"quiet\n")
call("post_fs_by_path", "reports/spring", body={"uploadfile": [file("/start,200\n", "day.csv")]})
call("get_fs", type_="dir")
call("post_fs_copy", body={"srcpath": "/reports/spring/day.csv", "dstpath": "/archive"})
call("get_action_parsefile", rule=RULE, filename="/archive/day.csv")
call("delete_fs_by_path", "reports/spring/day.txt")

call("post_host", body={"host": "web-1", "isagent": 1})
call("get_host")
call("get_host_by_name", "web-1")
call("post_job", body={"name": "backup", "dir": "nightly/late", "exec": ["true"], "host": ["web-1"]})
equal(call("get_job_exist_by_path", "backup@nightly/late").message, True)
call("get_job_by_path", "backup@nightly/late")
call("get_job_disable_by_path", "backup@nightly/late")
call("get_job")
call("delete_job_by_path", "backup@nightly/late")

call("post_extend_by_name", "sites/north", body={"items": [{"key": "a"}]})
equal(len(call("get_extend_by_name", "sites/north").message), 1)
call("delete_extend_by_name", "sites/north")
call("post_monitoring_depot", body={"name": "check", "version": "1.0.0", "uploadfile": file("true\n", "check.sh")})
call("get_monitoring_depot_by_name", "check")
call("get_admin_users", fullname="/")
call("post_admin_perms_group", body={"name": "night", "readonly": [VISITS]})
call("get_audit_verify")
call("get_audit_export")
call("get_cluster_info")
call("get_healthz")

for raw in ("reports/spring/day.csv", "reports%2Fspring%2Fday.csv"):
    answer = CLIENT.get_httpx_client().get(f"/fs/{raw}")
    equal((answer.status_code, answer.content), (200, b"/start,200\n"))
    CALLS += 1

print(f"{CALLS} calls by the generated client")
if CALLS < 40:
    sys.exit("fewer than 40 calls")
