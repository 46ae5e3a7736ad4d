import type { Endpoint } from "../../../controller/http/interface/endpoint.ts";
import type { SocketEndpoint } from "../../../controller/http/sockets/socket.ts";
import { callOf, inputOf, isDear, WORDS, type Draw, type DrawnCall } from "../draw.ts";
import { CLASSES, NAMES, PLATFORM_CLASSES, TEXTS } from "./names.ts";
import { matchStatement, searchText, statement } from "./statements.ts";

/** A socket to open, before it is opened. */
export interface DrawnSocket {
  readonly socket: SocketEndpoint;
  readonly input: Readonly<Record<string, unknown>>;
}

export type Drawn = DrawnCall | DrawnSocket;

/** Endpoints, sockets and functions that the drawn calls are of. */
export interface Interface {
  readonly endpoints: readonly Endpoint[];
  /** Those to draw from, when any of them will do. */
  readonly preferred: readonly Endpoint[];
  readonly sockets: readonly SocketEndpoint[];
  /** Names of the functions that scripts find, such as `odb.mql`. */
  readonly functions: readonly string[];
}

/** One way to data. */
interface Way {
  /** How often it is drawn, in relation to the others. */
  readonly share: number;
  readonly draw: (draw: Draw, to: Interface) => Drawn;
}

/** A new way needs one entry here. Scripts and hashes of passwords cost the most, so they are drawn rarely. */
export const WAYS: Readonly<Record<string, Way>> = {
  "any endpoint": {
    share: 120,
    draw: (draw, { preferred }) => callOf(draw(preferred.filter((one) => one.events !== true && !isDear(one))), draw),
  },
  "an endpoint that reads": {
    share: 200,
    draw: (draw, { preferred }) => callOf(draw(preferred.filter(isReading)), draw),
  },
  "a marked object by its name": {
    share: 140,
    draw: (draw, { preferred }) =>
      byName(draw(preferred.filter((one) => isReading(one) && /[:*]/.test(one.path))), draw),
  },
  "an endpoint with a password": {
    share: 4,
    draw: (draw, { endpoints }) => callOf(draw(endpoints.filter(isDear)), draw),
  },
  mql: {
    share: 160,
    draw: (draw, to) => ({ endpoint: draw(both(to, "/mxobject/mql")), path: {}, input: { mql: statement(draw) } }),
  },
  search: {
    share: 60,
    draw: (draw, to) => ({ endpoint: draw(both(to, "/mxobject/search")), path: {}, input: { cond: searchText(draw) } }),
  },
  export: {
    share: 30,
    draw: (draw, to) => ({ endpoint: named(to, "GET", "/mxobject/export"), path: {}, input: exported(draw, "mql") }),
  },
  "export as a workbook": {
    share: 4,
    draw: (draw, to) => ({ endpoint: named(to, "GET", "/mxobject/export"), path: {}, input: exported(draw, "xlsx") }),
  },
  "class of the platform": { share: 40, draw: (draw, to) => wholeClass(draw(PLATFORM_CLASSES), draw, to) },
  import: {
    share: 8,
    draw: (draw, to) => ({
      endpoint: named(to, "POST", "/mxobject/import"),
      path: {},
      input: { plan: draw([true, false]) },
      files: [{ field: "uploadfile", filename: "objects.mql", content: `${statement(draw)};\n${statement(draw)};\n` }],
    }),
  },
  "history of configuration": {
    share: 8,
    draw: (draw, to) => ({
      endpoint: named(to, "GET", draw(["/config/history", "/config/diff", "/config/export"])),
      path: {},
      input: { key: draw(["/matrix/covert", "/matrix/covert/key", "/"]), from: 1 },
    }),
  },
  script: {
    share: 3,
    draw: (draw, to) => ({
      endpoint: named(to, "POST", "/script/exec/js"),
      path: {},
      input: {},
      text: scriptOf(Array.from({ length: CALLS_OF_SCRIPT }, () => hostCall(draw, to))),
    }),
  },
  "stored script": {
    share: 1,
    draw: (draw, to) => ({
      endpoint: named(to, "POST", "/script/exec/js"),
      path: {},
      input: { filepath: draw(["/query.js", "/said.js"]), input: statement(draw) },
    }),
  },
  "field in Lua": {
    share: 1,
    draw: (draw, to) => ({
      endpoint: named(to, "POST", "/mxobject/search"),
      path: {},
      input: { cond: `${searchText(draw)} | lua f=<lua>return OBJECT.${draw(["note", "hushed", "id"])}</lua>` },
    }),
  },
  socket: {
    share: 10,
    draw: (draw, { sockets }) => {
      const socket = draw(sockets);
      return { socket, input: { ...valuesOfPath(socket, draw), ...inputOf(socket, draw) } };
    },
  },
  notifications: {
    share: 4,
    draw: (draw, { sockets }) => ({
      socket: sockets.find(({ path }) => path === "/websocket/:subject") ?? draw(sockets),
      input: { subject: draw(SUBJECTS) },
    }),
  },
  "console log": {
    share: 6,
    draw: (draw, to) => {
      const input = { name: draw(["/said.js", "said.js", "vault"]) };
      const path = `/consolelog/serverjs${draw(["", "/follow"])}`;
      const socket = to.sockets.find((one) => one.path === path);
      return socket !== undefined && draw([true, false])
        ? { socket, input }
        : { endpoint: named(to, "GET", path), path: {}, input };
    },
  },
  "event stream": {
    share: 4,
    draw: (draw, { endpoints }) => {
      const call = callOf(draw(endpoints.filter(({ events }) => events === true)), draw);
      return draw([call, { ...call, input: { name: "/said.js" } }]);
    },
  },
};

/** Subjects of the sockets. The calls cause the events, except for those that the test itself publishes. */
export const SUBJECTS = ["datachange", "jobrun", "transfer", "deployment", "vault"] as const;
const CALLS_OF_SCRIPT = 8;

export interface DrawnWay {
  readonly way: string;
  readonly drawn: Drawn;
}

/** Draws calls in the proportions of `WAYS`. */
export function drawerOf(to: Interface): (draw: Draw) => DrawnWay {
  const tickets = Object.entries(WAYS).flatMap(([way, { share }]) => Array.from({ length: share }, () => way));
  return (draw) => {
    const way = draw(tickets);
    return { way, drawn: (WAYS[way] as Way).draw(draw, to) };
  };
}

/** A call about the marked object that the endpoint most likely knows. */
function byName(endpoint: Endpoint, draw: Draw): DrawnCall {
  const object = endpoint.path.startsWith("/job") ? "covert@d" : draw(["covert", "covert", "covert", "vault"]);
  return callOf(endpoint, draw, { ...WORDS, names: [object], objects: [object] });
}

export function isReading({ permission, events }: Endpoint): boolean {
  return permission.endsWith(":read") && events !== true;
}

function named({ endpoints }: Interface, method: string, path: string): Endpoint {
  const found = endpoints.find((one) => one.method === method && one.path === path);
  if (found === undefined) throw new Error(`There is no ${method} ${path}.`);
  return found;
}

const both = (to: Interface, path: string): readonly Endpoint[] => [named(to, "GET", path), named(to, "POST", path)];

function valuesOfPath({ path }: SocketEndpoint, draw: Draw): Readonly<Record<string, string>> {
  return Object.fromEntries([...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => [name, draw(NAMES)]));
}

function exported(draw: Draw, filetype: string): Readonly<Record<string, unknown>> {
  return {
    class: draw(CLASSES),
    recursive: draw([true, false]),
    filetype,
    ...draw<Readonly<Record<string, unknown>>>([
      {},
      { times: true },
      { ignorefields: "note" },
      { relation_defined: true },
      { limit: 1 },
      { template: true },
    ]),
  };
}

/** A call that answers every object of the class. */
function wholeClass(path: string, draw: Draw, to: Interface): DrawnCall {
  return draw([
    () => ({ endpoint: draw(both(to, "/mxobject/mql")), path: {}, input: { mql: `select * from ${path}` } }),
    () => ({ endpoint: draw(both(to, "/mxobject/search")), path: {}, input: { cond: `#${path}: | top -1` } }),
    () => ({ endpoint: named(to, "GET", "/mxobject/export"), path: {}, input: { class: path } }),
  ])();
}

/** A call in a script, as JavaScript. */
function hostCall(draw: Draw, { functions }: Interface): string {
  return draw([
    () => `odb.mql(${JSON.stringify(statement(draw))})`,
    () => `odb.search(${JSON.stringify(searchText(draw))})`,
    () => `graphalg.endpoints(${JSON.stringify(matchStatement(draw))})`,
    () => `graphalg.connectedGraphs(${draw(['["vault:open"]', '["vault:ajar", "vault:closed"]'])}, 3)`,
    () => `odb.mql("select * from ${draw(CLASSES)} where code = ?", "closed")`,
    () => `${draw(functions)}(${Array.from({ length: draw([1, 1, 2]) }, () => JSON.stringify(draw(TEXTS))).join()})`,
  ])();
}

/** A script that answers the results or errors of all calls. */
function scriptOf(calls: readonly string[]): string {
  const each = calls.map((call) => `function () { return ${call}; }`).join();
  return `OUTPUT = [${each}].map(function (one) { try { return one(); } catch (error) { return String(error.message); } })`;
}
