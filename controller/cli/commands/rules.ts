import type { MessageOf, OdpClient, RequestOf } from "../../../common/client/index.ts";
import { AppError } from "../../../common/errors.ts";
import { RECENT_RECORDS_MAX } from "../../../common/limits.ts";
import { counted } from "../../../common/text/counted.ts";
import { suggestion } from "../../../common/text/nearest.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { column, type View } from "../formats/columns.ts";
import { DEFINITION_FILE, FILE, definitionsIn, fileText, replacing, resultsOf, storeEach } from "./definitions.ts";
import { LOG_FLAGS, showLog } from "./logs.ts";
import { RULE } from "./words.ts";

type Rule = MessageOf<"getMxobjectRule">[number];
type Trial = MessageOf<"postMxobjectRuleTry">;

const VIEW: View = {
  name: "key",
  columns: [
    column("rule", { member: "key", isWhole: true }),
    column("class"),
    column("parser", { member: "type" }),
    column("text", { member: "value", isWide: true }),
  ],
};
const TRIED: View = {
  name: "line",
  columns: [
    column("line"),
    column("class"),
    column("values"),
    column("time", { isTime: true }),
    column("error"),
    column("record", { isWide: true }),
  ],
};
/** Exit code of a trial in which a record failed. */
const RECORD_FAILED = 2;

/** `odp rule` */
export const RULE_COMMANDS: CommandDeclaration = {
  name: "rule",
  summary: "list, store, try and remove rules: how raw records become objects",
  commands: [
    {
      name: "list",
      isReading: true,
      summary: "list the rules",
      flags: [
        { name: "class", value: "class", summary: "only those whose records go to this class", completes: "classes" },
      ],
      run: list,
    },
    { name: "show", isReading: true, summary: "write the text of a rule", arguments: [RULE], run: show },
    {
      name: "apply",
      summary: "store a rule by its text, or rules by their definitions",
      details:
        "With a key, the file is the text of the rule. Without one it is the JSON of one definition or of a list, as odp rule show -o json writes it. A rule that was changed by another user meanwhile is not replaced. It runs with your rights.",
      arguments: [{ ...RULE, isOptional: true }],
      flags: [DEFINITION_FILE],
      examples: ["odp rule apply /acme/rules/access -f access.rule", "odp rule apply -f rules.json"],
      run: apply,
    },
    {
      name: "try",
      summary: "show what a rule makes of sample records; nothing is stored",
      details:
        "The rule is the stored one, or the text of --file. The samples are the lines of --lines, or the newest records of a policy.",
      arguments: [{ ...RULE, isOptional: true }],
      flags: [
        { ...FILE, summary: "text of a rule, in place of a stored one; - is the standard input" },
        {
          name: "lines",
          value: "path",
          summary: "file with one sample record a line; - is the standard input",
          completes: "files",
        },
        {
          name: "policy",
          value: "policy",
          summary: "take the newest raw records of this policy",
          completes: "policies",
        },
        { name: "last", value: "n", summary: `with --policy: how many records, up to ${RECENT_RECORDS_MAX}` },
        { name: "host", value: "host", summary: "host that the records would come from", completes: "hosts" },
        { name: "source", value: "path", summary: "file that they would come from" },
      ],
      exitCodes: { 0: "every record was taken", 2: "a record failed; the table says why" },
      examples: [
        "odp rule try /acme/rules/access --lines access.log",
        "odp rule try -f access.rule --policy access --last 5",
      ],
      run: tryRule,
    },
    {
      name: "log",
      summary: "show what a rule wrote, and which records failed",
      arguments: [RULE],
      flags: LOG_FLAGS,
      run: log,
    },
    {
      name: "remove",
      summary: "remove a rule; the records of its policies wait on their hosts",
      arguments: [RULE],
      run: remove,
    },
  ],
};

function rulesOf(client: OdpClient, signal: AbortSignal, only?: string): Promise<readonly Rule[]> {
  const request = only === undefined ? {} : { query: { class: only } };
  return client.call("getMxobjectRule", request, { signal });
}

async function ruleNamed(client: OdpClient, key: string, signal: AbortSignal): Promise<Rule> {
  const rules = await rulesOf(client, signal);
  const found = rules.find((rule) => rule.key === key);
  if (found !== undefined) return found;
  const known = rules.map((rule) => rule.key);
  throw new AppError("not_found", `There is no rule ${key}${suggestion(key, known)} Run: odp rule list`);
}

async function list(call: Call): Promise<void> {
  const { shell } = call;
  await shell.show(await rulesOf(await shell.client(), shell.ended(), call.optional("class")), VIEW);
}

/** The text alone, and the definition in other formats. */
async function show(call: Call): Promise<void> {
  const { shell } = call;
  const rule = await ruleNamed(await shell.client(), call.text("rule"), shell.ended());
  await (shell.format === "table" ? shell.show(rule.value) : shell.show(rule, VIEW));
}

async function apply(call: Call): Promise<void> {
  const { shell } = call;
  const key = call.optional("rule");
  const definitions =
    key === undefined
      ? ((await definitionsIn(call, ["key", "value"])) as unknown as readonly Pick<Rule, "key" | "value">[])
      : [{ key, value: await fileText(call) }];
  const [client, signal] = [await shell.client(), shell.ended()];
  await storeEach(call, {
    definitions,
    view: resultsOf("key"),
    async store({ key: at, value }) {
      const before = (await rulesOf(client, signal)).find((rule) => rule.key === at);
      const { condition, result } = replacing(before?.revision);
      await client.call("putMxobjectRule", { body: { key: at, value } }, { ...condition, signal });
      return { key: at, result };
    },
  });
}

async function tryRule(call: Call): Promise<number> {
  const { shell } = call;
  const body = await trialOf(call);
  const client = await shell.client();
  return showTrial(call, await client.call("postMxobjectRuleTry", { body }, { signal: shell.ended() }), body.lines);
}

/** Shows a trial, and returns its exit code. `lines`: the sample, if the answer lacks it. */
export async function showTrial({ shell }: Call, trial: Trial, lines?: readonly string[]): Promise<number> {
  await (shell.format === "json" || shell.format === "yaml"
    ? shell.show(trial)
    : shell.show(rowsOf(trial, lines), TRIED));
  for (const { level, msg } of trial.log) shell.note(`${level}: ${msg}`);
  if (trial.notCalled.length > 0) shell.note(`A trial does not carry out: ${trial.notCalled.join(", ")}.`);
  const failed = trial.records.filter(({ errors }) => errors.length > 0).length;
  if (failed > 0) shell.note(`${failed} of ${counted(trial.records.length, "record")} failed.`);
  return failed > 0 ? RECORD_FAILED : 0;
}

async function trialOf(call: Call): Promise<RequestOf<"postMxobjectRuleTry">["body"]> {
  const [key, file, sample] = [call.optional("rule"), call.optional("file"), call.optional("lines")];
  const [policy, host, source] = [call.optional("policy"), call.optional("host"), call.optional("source")];
  const last = call.number("last", { max: RECENT_RECORDS_MAX });
  if (key !== undefined && file !== undefined) throw new UsageError("Give one of the key of a rule and --file.");
  if (key === undefined && file === undefined && policy === undefined)
    throw new UsageError("Give the key of a rule, --file, or --policy for the rule of a policy.");
  if ((sample === undefined) === (policy === undefined)) throw new UsageError("Give one of --lines and --policy.");
  if (last !== undefined && policy === undefined) throw new UsageError("--last needs --policy.");
  if (file === "-" && sample === "-") throw new UsageError("Only one of --file and --lines can be the standard input.");
  const read = async (path: string): Promise<string> => (await call.shell.input(path)).toString("utf8");
  return {
    ...(key !== undefined && { key }),
    ...(file !== undefined && { text: await read(file) }),
    ...(sample !== undefined && { lines: linesIn(await read(sample)) }),
    ...(policy !== undefined && { policy }),
    ...(last !== undefined && { last }),
    ...(host !== undefined && { host }),
    ...(source !== undefined && { source }),
  };
}

function linesIn(text: string): readonly string[] {
  const lines = text.split(/\r?\n/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}

/** One row for each object and each error of a record; one for a record of which nothing is made. */
function rowsOf({ records }: Trial, lines: readonly string[] | undefined): readonly object[] {
  return records.flatMap(({ line, raw, rows, errors }) => {
    const record = raw?.text ?? lines?.[line - 1];
    const made = [
      ...rows.map(({ class: path, values, time }) => ({ line, class: path, values, time, record })),
      ...errors.map(({ message, line: at, column: position }) => ({
        line,
        error:
          at === undefined
            ? message
            : `${message} (line ${at} of the rule${position === undefined ? "" : `, column ${position}`})`,
        record,
      })),
    ];
    return made.length > 0 ? made : [{ line, error: "", record }];
  });
}

function log(call: Call): Promise<number | void> {
  return showLog(call, { kind: "rule", name: call.text("rule") });
}

async function remove(call: Call): Promise<void> {
  const { shell } = call;
  const [client, signal] = [await shell.client(), shell.ended()];
  const { key, revision } = await ruleNamed(client, call.text("rule"), signal);
  await client.call("deleteMxobjectRule", { query: { key } }, { signal, ifMatch: revision });
}
