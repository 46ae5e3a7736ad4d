import type { MessageOf, OdpClient, RequestOf } from "../../../common/client/index.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import { CLI_RUNS_MAX } from "../../../common/limits.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, isRow, type Row, type View } from "../formats/columns.ts";
import { PREVIEW_COMMAND } from "./policy-preview.ts";
import { jsonIn } from "./raw.ts";
import { POLICY } from "./words.ts";

type Policy = MessageOf<"getMonitoringPolicyByName">;

const VIEW: View = {
  name: "name",
  columns: [
    column("name", { isWhole: true }),
    column("kind"),
    column("status"),
    column("hosts"),
    column("rule"),
    column("depot", { member: "depotname" }),
    column("changed", { isTime: true }),
    column("tags", { isWide: true }),
    column("version", { isWide: true, member: "depotversion" }),
    column("command", { isWide: true }),
    column("dir", { isWide: true }),
    column("match", { isWide: true }),
    column("created", { isTime: true, isWide: true }),
    column("creator", { isWide: true }),
  ],
};
const STATUS: View = {
  name: "host",
  columns: [
    column("host"),
    column("state"),
    column("since", { isTime: true, isNear: true }),
    column("last run", { member: "ended", isTime: true, isNear: true }),
    column("result"),
    column("records"),
    column("message"),
  ],
};
const DRIFT: View = {
  name: "host",
  columns: [column("policy"), column("host"), column("state"), column("since", { isTime: true }), column("message")],
};
const APPLIED: View = { name: "name", columns: [column("name"), column("kind"), column("result")] };

/** `odp policy` */
export const POLICY_COMMANDS: CommandDeclaration = {
  name: "policy",
  summary: "list, store, deploy and remove policies, and see how they run",
  commands: [
    { name: "list", isReading: true, summary: "list the policies", run: list },
    { name: "show", isReading: true, summary: "show one policy", arguments: [POLICY], run: show },
    {
      name: "apply",
      summary: "make or replace policies by their definitions",
      details:
        "The file has the JSON of one definition, or of a list of them. A definition with dir and match is a log policy. A policy that was changed by another user meanwhile is not replaced.",
      flags: [
        {
          name: "file",
          short: "f",
          value: "path",
          summary: "JSON of the definitions; - is the standard input",
          completes: "files",
          default: "-",
        },
      ],
      examples: ["odp policy apply -f load.json", "odp -o json policy show load | odp policy apply"],
      run: apply,
    },
    {
      name: "status",
      isReading: true,
      summary: "show for each host of a policy whether it runs, and its last run",
      arguments: [POLICY],
      run: status,
    },
    {
      name: "drift",
      isReading: true,
      summary: "show the hosts that do not run what they are to run, of all policies",
      details:
        "A host that runs a policy it is not to run is shown as well, as leaving. The reason is the message. Nothing is printed if all is as it should be.",
      run: drift,
    },
    {
      name: "deploy",
      summary: "run a policy on its hosts",
      arguments: [POLICY],
      flags: [
        {
          name: "host",
          value: "host",
          summary: "host that the policy gets in addition",
          isRepeated: true,
          completes: "hosts",
        },
      ],
      run: deploy,
    },
    PREVIEW_COMMAND,
    { name: "undeploy", summary: "stop a policy on all its hosts", arguments: [POLICY], run: undeploy },
    {
      name: "remove",
      summary: "remove a policy",
      arguments: [POLICY],
      flags: [{ name: "force", summary: "also one that is deployed" }],
      run: remove,
    },
  ],
};

async function list({ shell }: Call): Promise<void> {
  await shell.show(await (await shell.client()).call("getMonitoringPolicy", {}, { signal: shell.ended() }), VIEW);
}

async function show(call: Call): Promise<void> {
  const { shell } = call;
  await shell.show(await policyNamed(await shell.client(), call.text("policy"), shell.ended()), VIEW);
}

function policyNamed(client: OdpClient, name: string, signal: AbortSignal): Promise<Policy> {
  return client.call("getMonitoringPolicyByName", { path: { name } }, { signal });
}

/** Members that a definition has only in answers. */
const ANSWERED: readonly string[] = [
  ...["id", "class", "kind", "matched", "status", "created", "changed", "creator", "revision"],
];

async function apply(call: Call): Promise<void> {
  const { shell } = call;
  const file = call.text("file");
  const given = jsonIn((await shell.input(file)).toString("utf8"), file === "-" ? "The standard input" : file);
  const definitions = Array.isArray(given) ? given : [given];
  const wrong = definitions.findIndex((one) => !isRow(one) || typeof one["name"] !== "string");
  if (wrong !== -1) throw new UsageError(`Definition ${wrong + 1} is no object with a name.`);
  const client = await shell.client();
  const results: object[] = [];
  try {
    for (const one of definitions as readonly (Row & { readonly name: string })[])
      results.push(await applied(client, one, shell.ended()));
  } finally {
    // Those that are stored stay stored, also if a later one fails.
    if (results.length > 0) await shell.show(results, APPLIED);
  }
}

/** Stores one definition, unless another user has changed it since it was read. */
async function applied(
  client: OdpClient,
  given: Row & { readonly name: string },
  signal: AbortSignal,
): Promise<object> {
  const { name } = given;
  const before = await policyNamed(client, name, signal).catch((error: unknown) => {
    if (!isAppError(error, "not_found")) throw error;
    return undefined;
  });
  const body = Object.fromEntries(Object.entries(given).filter(([member]) => !ANSWERED.includes(member)));
  const condition = before === undefined ? { ifNoneMatch: "*" as const } : { ifMatch: before.revision };
  const isLog = "dir" in given || "match" in given;
  const options = { ...condition, signal };
  const { kind } = isLog
    ? await client.call(
        "postMonitoringPolicyLog",
        { body: body as RequestOf<"postMonitoringPolicyLog">["body"] },
        options,
      )
    : await client.call("postMonitoringPolicy", { body: body as RequestOf<"postMonitoringPolicy">["body"] }, options);
  return { name, kind, result: before === undefined ? "created" : "replaced" };
}

async function status(call: Call): Promise<void> {
  const { shell } = call;
  const [client, signal] = [await shell.client(), shell.ended()];
  const policy = await policyNamed(client, call.text("policy"), signal);
  const mql = `select host, state, since, message from ${classBeside(policy.class, "policystate")} where policy = ? order by host limit -1`;
  const states = await rowsOf(client, { mql, values: [policy.name] }, signal);
  const runs = policy.kind === "command" ? await newestRuns(client, policy, signal) : new Map<string, Row>();
  const rows = states.map(({ host, state, since, message }) => {
    const run = runs.get(String(host));
    return {
      ...{ host, state, since, ended: run?.["ended"], result: run?.["state"], records: run?.["records"] },
      message: message === "" ? run?.["message"] : message,
    };
  });
  if (policy.hosts.length === 0)
    shell.note(`${policy.name} has no hosts. Run: odp policy deploy ${policy.name} --host <host>`);
  else if (policy.status === "undeployed")
    shell.note(`${policy.name} is not deployed. Run: odp policy deploy ${policy.name}`);
  else if (rows.length === 0) shell.note(`No host matches ${policy.hosts.join(", ")} now.`);
  await shell.show(rows, STATUS);
}

async function drift({ shell }: Call): Promise<void> {
  const [client, signal] = [await shell.client(), shell.ended()];
  const [some] = [
    ...(await client.call("getMonitoringPolicy", {}, { signal })),
    ...(await client.call("getHost", {}, { signal })),
  ];
  // Without policies and hosts nothing can differ.
  if (some === undefined) return shell.show([], DRIFT);
  const path = classBeside(some.class, "policystate");
  const mql = `select policy, host, state, since, message from ${path} where state != 'running' order by policy, host limit -1`;
  await shell.show(await rowsOf(client, { mql }, signal), DRIFT);
}

/** The newest run of each host, of the last `CLI_RUNS_MAX` runs. */
async function newestRuns(client: OdpClient, policy: Policy, signal: AbortSignal): Promise<ReadonlyMap<string, Row>> {
  const path = classBeside(policy.class, "policyrun");
  const mql = `select host, state, ended, records, message from ${path} where policy = ? order by vtime desc limit ${CLI_RUNS_MAX}`;
  const newest = new Map<string, Row>();
  for (const run of await rowsOf(client, { mql, values: [policy.name] }, signal))
    if (!newest.has(String(run["host"]))) newest.set(String(run["host"]), run);
  return newest;
}

function rowsOf(client: OdpClient, body: { mql: string; values?: string[] }, signal: AbortSignal) {
  return client.call("postMxobjectMql", { body }, { signal, isRepeatable: true });
}

/** Path of the platform's class of this name, from the path of another one. */
function classBeside(path: string, name: string): string {
  return path.replace(/[^/]+$/, name);
}

async function deploy(call: Call): Promise<void> {
  const { shell } = call;
  const [client, name, hosts] = [await shell.client(), call.text("policy"), call.list("host")];
  const request = { path: { name }, ...(hosts.length > 0 && { query: { hosts } }) };
  const message = await client.call("postMonitoringPolicyDeployByName", request, { signal: shell.ended() });
  if (message.hosts.length === 0)
    throw new AppError(
      "invalid",
      `${name} has no hosts, so it runs nowhere. Run: odp policy deploy ${name} --host <host>`,
    );
  const matched = message.matched ?? message.hosts;
  const now = matched.length === 0 ? "on no host now" : `on ${matched.join(", ")} once their agents have it`;
  shell.note(`${name} runs ${now}. Run: odp policy status ${name}`);
}

async function undeploy(call: Call): Promise<void> {
  const { shell } = call;
  const path = { name: call.text("policy") };
  await (await shell.client()).call("postMonitoringPolicyUndeployByName", { path }, { signal: shell.ended() });
}

async function remove(call: Call): Promise<void> {
  const { shell } = call;
  const request = { path: { name: call.text("policy") }, ...(call.is("force") && { query: { force: true } }) };
  await (await shell.client()).call("deleteMonitoringPolicyByName", request, { signal: shell.ended() });
}
