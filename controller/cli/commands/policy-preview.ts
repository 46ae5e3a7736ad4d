import type { RequestOf } from "../../../common/client/index.ts";
import { POLICY_PREVIEW_RECORDS_DEFAULT, RULE_TRIAL_MAX_LINES } from "../../../common/limits.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { isRow, type Row } from "../formats/columns.ts";
import { jsonIn } from "./raw.ts";
import { showTrial } from "./rules.ts";
import { POLICY } from "./words.ts";

type Body = RequestOf<"postMonitoringPolicyPreview">["body"];

/** `odp policy preview` */
export const PREVIEW_COMMAND: CommandDeclaration = {
  name: "preview",
  summary: "show what a policy would send from a host, and what its rule makes of it",
  details:
    "The policy is the saved one, or the definition of --file. Its command runs once on the host and is ended after the first records; of a log, the newest records are read. Nothing is stored. Needs the rights to save policies and to run jobs.",
  arguments: [{ ...POLICY, isOptional: true }],
  flags: [
    {
      name: "file",
      short: "f",
      value: "path",
      summary: "JSON of a definition, in place of a saved policy; - is the standard input",
      completes: "files",
    },
    { name: "host", value: "host", summary: "host to read from", completes: "hosts" },
    {
      name: "records",
      short: "n",
      value: "n",
      summary: `how many records, ${POLICY_PREVIEW_RECORDS_DEFAULT} without it, up to ${RULE_TRIAL_MAX_LINES}`,
    },
  ],
  exitCodes: { 0: "every record was taken", 2: "a record failed; the table says why" },
  examples: ["odp policy preview load --host web-1", "odp policy preview -f access.json --host web-1 -n 5"],
  run: preview,
};

async function preview(call: Call): Promise<number> {
  const { shell } = call;
  const body = await bodyOf(call);
  const client = await shell.client();
  const found = await client.call("postMonitoringPolicyPreview", { body }, { signal: shell.ended() });
  const code = await showTrial(call, found);
  if (found.errors !== "") shell.note(`The command wrote to its error output: ${found.errors}`);
  if (found.source !== "") shell.note(`${counted(found.records.length, "record")} of ${found.source} on ${body.host}.`);
  return code;
}

async function bodyOf(call: Call): Promise<Body> {
  const [name, file, host] = [call.optional("policy"), call.optional("file"), call.optional("host")];
  const records = call.number("records", { max: RULE_TRIAL_MAX_LINES });
  if (host === undefined) throw new UsageError("Give --host, the host to read from.");
  if ((name === undefined) === (file === undefined))
    throw new UsageError("Give one of the name of a policy and --file.");
  const of = { host, ...(records !== undefined && { records }) };
  if (file === undefined) return { ...of, ...(name !== undefined && { name }) };
  const given = jsonIn((await call.shell.input(file)).toString("utf8"), file === "-" ? "The standard input" : file);
  if (!isRow(given)) throw new UsageError("The definition is no object.");
  const draft = given as Row;
  return { ...of, ...("dir" in draft || "match" in draft ? { log: draft } : { command: draft }) } as Body;
}
