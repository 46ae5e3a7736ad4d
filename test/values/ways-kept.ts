import type { Row } from "../../common/value.ts";
import { testPrincipal } from "../helpers/time/runtime.ts";
import { type Caller, messageOf } from "./calls.ts";
import type { KeptWay } from "./kept.ts";
import { TEXT_WAYS } from "./ways-texts.ts";

function form(members: Readonly<Record<string, string>>) {
  return {
    headers: { "content-type": "application/x-www-form-urlencoded" },
    payload: new URLSearchParams(members).toString(),
  };
}

const heard = new Map<string, unknown>();

async function firstItem(caller: Caller, key: string): Promise<unknown> {
  return (messageOf(await caller.call("GET", `/appcontext/collection/exact${key}?type=first`)) as Row)["v"];
}

export const KEPT_WAYS: readonly KeptWay[] = [
  {
    name: "`/appcontext/:key`",
    form: "text",
    write: (caller, text, key) => caller.text(`/appcontext/${key}`, text),
    read: async (caller, key) => messageOf(await caller.call("GET", `/appcontext/${key}`)),
  },
  {
    name: "`/appcontext/collection`",
    write: (caller, json, key) => caller.json("POST", `/appcontext/collection/exact${key}`, `{"v":${json}}`),
    read: firstItem,
  },
  {
    name: "script `appcontext.create`",
    form: "script",
    write: (caller, json, key) =>
      caller.script(`OUTPUT = appcontext.create("exact${key}", {v: JSON.parse(${JSON.stringify(json)})})`),
    read: firstItem,
  },
  {
    name: "`/config/set`",
    form: "text",
    write: (caller, text, key) =>
      caller.call("POST", "/config/set", form({ key: `/matrix/exact/${key}`, value: text })),
    read: async (caller, key) =>
      (messageOf(await caller.call("GET", `/config/get?key=/matrix/exact/${key}`)) as Row)["value"],
  },
  {
    name: "`/extend/:name`",
    write: (caller, json, key) => caller.json("POST", `/extend/${key}`, `[{"key":"a","v":${json}}]`),
    read: async (caller, key) => (messageOf(await caller.call("GET", `/extend/${key}`)) as readonly Row[])[0]?.["v"],
  },
  {
    name: "`/host` `config`",
    marks: { "-0": ["as text", "0"], "1e308": ["as text", "1e+308"], null: ["not kept", undefined] },
    write: (caller, json, key) => caller.json("POST", "/host", `{"host":"${key}","config":{"v":${json}}}`),
    read: async (caller, key) =>
      (
        (await caller.rows(`select config from /matrix/system/hostinfo where host = '${key}'`))[0]?.[
          "config"
        ] as Row | null
      )?.["v"],
  },
  {
    name: "script `input` and `OUTPUT`",
    async write(caller, json, key) {
      const source = await caller.call("PUT", `/fs/script/exact/${key}.js`, { payload: { data: "OUTPUT = input" } });
      if (!source.isOk) return source;
      const reply = await caller.json(
        "POST",
        "/script/exec/js",
        `{"filepath":"/exact/${key}.js","isfile":true,"input":{"v":${json}}}`,
      );
      heard.set(key, (reply.message as Row | undefined)?.["v"]);
      return reply;
    },
    read: (_caller, key) => Promise.resolve(heard.get(key)),
  },
  {
    name: "`/agent` to a channel",
    form: "text",
    marks: { empty: ["not kept", undefined] },
    async write(caller, text, key) {
      const end = caller.world.assembly.notifications.subscribe(testPrincipal(), { subject: key }, ({ msg }) => {
        heard.set(key, msg);
      });
      const reply = await caller.text(`/agent?subject=${key}`, text);
      end();
      return reply;
    },
    read: (_caller, key) => Promise.resolve(heard.get(key)),
  },
  ...TEXT_WAYS,
];
