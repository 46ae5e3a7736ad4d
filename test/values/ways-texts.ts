import type { Row } from "../../common/value.ts";
import { multipart } from "../helpers/jobs/monitoring.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { type Caller, messageOf, type Reply } from "./calls.ts";
import type { KeptWay } from "./kept.ts";

/** Places that store a caller's text outside of object columns, or pass texts on to jobs and listeners. */

/** A number is written as JavaScript writes it. */
const AS_TEXT = { "-0": ["as text", "0"], "1e308": ["as text", "1e+308"] } as const;
const UNSET = { ...AS_TEXT, null: ["not kept", ""] } as const;

type Member = Pick<KeptWay, "name" | "marks" | "form"> & {
  /** Creates the objects that the way needs. */
  readonly before?: (caller: Caller) => Promise<Reply>;
  /** A call with this JSON as the member. */
  readonly write: (json: string, key: string) => readonly [method: "POST" | "PUT", url: string, body: string];
  readonly read: (key: string) => readonly [url: string, member: string];
};

/** A member of a JSON body that is read back as a member of an answer. */
function member({ before, write, read, ...way }: Member): KeptWay {
  return {
    marks: UNSET,
    ...way,
    async write(caller, json, key) {
      if (before) messageOf(await before(caller));
      return caller.json(...write(json, key));
    },
    async read(caller, key) {
      const [url, name] = read(key);
      const answer = messageOf(await caller.call("GET", url)) as Row | readonly Row[];
      const record = Array.isArray(answer) ? answer[0] : answer;
      return name.split("/").reduce<unknown>((part, step) => (part as Row | undefined)?.[step], record);
    },
  };
}

/** A rule with the text as a comment. */
const RULE = "--class=/matrix/exact\n--parser=json\n-- ";

const SETTINGS: readonly KeptWay[] = [
  member({
    name: "`/job` `description`",
    write: (json, key) => ["POST", "/job", `{"name":"${key}","exec":["true"],"description":${json}}`],
    read: (key) => [`/job/${key}`, "description"],
  }),
  member({
    name: "`/job` `exec`",
    form: "words",
    marks: {},
    write: (json, key) => ["POST", "/job", `{"name":"${key}","exec":[${json}]}`],
    read: (key) => [`/job/${key}`, "exec/0"],
  }),
  member({
    name: "`/monitoring/policy` `attrs`",
    marks: { ...AS_TEXT, null: ["not kept", undefined] },
    before: (caller) =>
      caller.json("PUT", "/mxobject/rule", '{"key":"/matrix/rules/a","value":"--class=/matrix/exact\\n--parser=json"}'),
    write: (json, key) => [
      "POST",
      "/monitoring/policy",
      `{"name":"${key}","rule":"/matrix/rules/a","command":"true","ctype":1,"interval":1,"unit":"day","attrs":{"v":${json}}}`,
    ],
    read: (key) => [`/monitoring/policy/${key}`, "attrs/v"],
  }),
  member({
    name: "`/pattern` `eg`",
    write: (json, key) => ["POST", `/pattern/${key.toUpperCase()}`, `{"pattern":"x","eg":${json}}`],
    read: (key) => [`/pattern/${key.toUpperCase()}`, "eg"],
  }),
  {
    name: "`/mxobject/rule`",
    form: "words",
    write: (caller, json, key) => {
      const value = JSON.stringify(RULE + (JSON.parse(json) as string));
      return caller.json("PUT", "/mxobject/rule", `{"key":"/matrix/rules/kept/${key}","value":${value}}`);
    },
    async read(caller, key) {
      const rules = messageOf(await caller.call("GET", "/mxobject/rule?class=/matrix/exact")) as readonly Row[];
      const value = rules.find((rule) => rule["key"] === `/matrix/rules/kept/${key}`)?.["value"];
      return String(value).startsWith(RULE) ? String(value).slice(RULE.length) : value;
    },
  },
  member({
    name: "`/companys` `title`",
    write: (json) => ["PUT", "/companys", `{"name":"matrix","title":${json}}`],
    read: () => ["/companys/matrix", "title"],
  }),
];

const PROGRAMS = "/matrix/programs";

const RECORDS: readonly KeptWay[] = [
  member({
    name: "`/admin/users` `remark`",
    write: (json, key) => [
      "POST",
      "/admin/users/new",
      `{"parent":"/","username":"${key}","otype":"org","remark":${json}}`,
    ],
    read: (key) => [`/admin/users?fullname=/${key}`, "remark"],
  }),
  {
    name: "`/mxobject/trigger`",
    form: "words",
    async write(caller, json, key) {
      await caller.rows(`create class if not exists ${PROGRAMS} (k varchar, keys(k))`);
      const script = JSON.stringify(`-- ${JSON.parse(json) as string}`);
      const body = `{"class":"${PROGRAMS}","name":"${key}","script":${script},"attr":{"disable":"true"}}`;
      return caller.json("PUT", "/mxobject/trigger", body);
    },
    async read(caller, key) {
      const [of] = messageOf(await caller.call("GET", `/mxobject/trigger?class=${PROGRAMS}`)) as readonly Row[];
      return String((of?.["script"] as Row | undefined)?.[key]).slice("-- ".length);
    },
  },
];

async function imported(caller: Caller, json: string, key: string): Promise<Reply> {
  return caller.upload("/config/import", "a.json", `[{"key":"/matrix/kept/${key}","value":${json}}]`);
}

/** The value in the three answers that contain it; a difference is returned instead of the value. */
async function entryOf(caller: Caller, key: string): Promise<unknown> {
  const path = `/matrix/kept/${key}`;
  const { value } = messageOf(await caller.call("GET", `/config/get?key=${path}`)) as Row;
  const [listed] = messageOf(await caller.call("GET", `/config/list?key=${path}`)) as readonly Row[];
  const [exported] = JSON.parse((await caller.call("GET", `/config/export?key=${path}`)).bytes.toString()) as Row[];
  const all = [value, listed?.["value"], exported?.["value"]];
  return all.every((one) => one === value) ? value : all;
}

const CONFIGURATION: readonly KeptWay[] = [
  {
    name: "`/config/set`, JSON",
    marks: AS_TEXT,
    write: (caller, json, key) => caller.json("POST", "/config/set", `{"key":"/matrix/kept/${key}","value":${json}}`),
    read: entryOf,
  },
  {
    name: "`/config/set`, multipart",
    form: "text",
    write: async (caller, value, key) =>
      caller.call(
        "POST",
        "/config/set",
        await multipart([
          ["key", `/matrix/kept/${key}`],
          ["value", value],
        ]),
      ),
    read: entryOf,
  },
  { name: "`/config/import`", form: "words", write: imported, read: entryOf },
];

/** The part of a job's output that the script of the job wrote. */
const said = new Map<string, unknown>();

/** A job with a script that returns its parameter `v` as JSON. */
async function echo(caller: Caller, key: string): Promise<Reply> {
  const exec = ["serverjs OUTPUT = JSON.stringify({ v: INPUT.env.v })"];
  return caller.json("POST", "/job", JSON.stringify({ name: key, exec }));
}

async function answered(key: string, reply: Reply, output: unknown): Promise<Reply> {
  if (reply.isOk) said.set(key, (JSON.parse(String(output)) as Row)["v"]);
  return reply;
}

const GIVEN_TO_JOBS: Pick<KeptWay, "marks" | "read"> = {
  marks: { ...AS_TEXT, null: ["not kept", undefined] },
  read: (_caller, key) => Promise.resolve(said.get(key)),
};

const JOBS: readonly KeptWay[] = [
  {
    name: "job `param`",
    ...GIVEN_TO_JOBS,
    async write(caller, json, key) {
      messageOf(await echo(caller, key));
      const param = encodeURIComponent(`{"v":${json}}`);
      const reply = await caller.call("GET", `/job/exec/${key}?receive_output=true&timeout=60&param=${param}`);
      return answered(key, reply, reply.message);
    },
  },
  {
    name: "`/job/batch` `param`",
    ...GIVEN_TO_JOBS,
    async write(caller, json, key) {
      messageOf(await echo(caller, key));
      const reply = await caller.json(
        "POST",
        "/job/batch",
        `{"jobs":[{"name":"${key}","param":${JSON.stringify(`{"v":${json}}`)}}],"timeout":60}`,
      );
      return answered(key, reply, (reply.message as readonly Row[] | undefined)?.[0]?.["message"]);
    },
  },
  member({
    name: "`/job/context`",
    marks: AS_TEXT,
    write: (json, key) => ["PUT", `/job/context/${key}`, `{"name":"v","value":${json}}`],
    read: (key) => [`/job/context/${key}`, "v"],
  }),
  {
    name: "script `job.setcontext`",
    form: "words",
    write: (caller, json, key) => caller.script(`OUTPUT = job.setcontext("${key}", "v", ${json}, 60)`),
    read: async (caller, key) => (messageOf(await caller.call("GET", `/job/context/${key}`)) as Row)["v"],
  },
];

const heard = new Map<string, unknown>();

export const TEXT_WAYS: readonly KeptWay[] = [
  ...SETTINGS,
  ...RECORDS,
  ...CONFIGURATION,
  ...JOBS,
  {
    name: "`/fs`",
    form: "words",
    write: (caller, json, key) => caller.json("PUT", `/fs/exact/${key}.txt`, `{"data":${json}}`),
    read: async (caller, key) => (await caller.call("GET", `/fs/exact/${key}.txt`)).bytes.toString(),
  },
  {
    name: "script `message.send`",
    form: "words",
    async write(caller, json, key) {
      const end = caller.world.assembly.notifications.subscribe(testPrincipal(), { subject: key }, ({ msg }) => {
        heard.set(key, msg);
      });
      const reply = await caller.script(`OUTPUT = message.send("here", "${key}", "title", ${json})`);
      end();
      return reply;
    },
    read: (_caller, key) => Promise.resolve(heard.get(key)),
  },
];
