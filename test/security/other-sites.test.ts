import { once } from "node:events";
import type { InjectOptions } from "fastify";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TSchema } from "typebox";
import { WebSocket } from "ws";
import type { Statement } from "../../common/mql/index.ts";
import type { Segment } from "../../common/search/index.ts";
import type { Endpoint } from "../../controller/http/interface/endpoint.ts";
import { TIMES } from "../helpers/time/times.ts";
import { HOST, SENDERS, type Sender } from "./senders.ts";
import { openWorld, type World } from "./world.ts";

/**
 * Calls with credentials that a browser adds by itself may change or run something only for pages of our own site:
 * every endpoint, every statement, every sender.
 */

interface Work {
  readonly text: string;
  readonly changes: boolean;
}

/** A text for every kind of statement. A new kind does not compile without one. */
const STATEMENTS: Readonly<Record<Statement["kind"], Work>> = {
  select: { text: "select * from /matrix/sites", changes: false },
  union: { text: "select host from /matrix/sites union select host from /matrix/sites", changes: false },
  selectEdgeTypes: { text: "select edgetype", changes: false },
  match: { text: "match (:box)-[]->(:box)", changes: false },
  explain: { text: "explain select * from /matrix/sites", changes: false },
  insert: { text: "insert into /matrix/sites host='a', size=1", changes: true },
  insertJson: { text: `insert json '{"class":"/matrix/sites","host":"j"}'`, changes: true },
  update: { text: "update /matrix/sites size=2 where host='a'", changes: true },
  delete: { text: "delete from /matrix/sites where host='a'", changes: true },
  createClass: { text: "create class if not exists /matrix/sites/below (extra int)", changes: true },
  dropClass: { text: "drop class if exists /matrix/sites/below", changes: true },
  alterClass: { text: "alter class /matrix/sites set ttl=30 day", changes: true },
  createEdgeType: { text: "create edge type feeds", changes: true },
  dropEdgeType: { text: "drop edge type feeds", changes: true },
  batch: { text: "begin insert into /matrix/sites host='b' end", changes: true },
};

/** A search for every kind of segment. */
const SEARCHES: Readonly<Record<Segment["kind"], Work>> = {
  match: { text: "#/matrix/sites: a", changes: false },
  top: { text: "#/matrix/sites: | top 1", changes: false },
  sort: { text: "#/matrix/sites: | sort by host", changes: false },
  print: { text: "#/matrix/sites: | print host", changes: false },
  uniq: { text: "#/matrix/sites: | uniq host", changes: false },
  group: { text: "#/matrix/sites: | count() by host", changes: false },
  time: { text: "#/matrix/sites: | last day", changes: false },
  call: { text: "#/matrix/sites: | call tree", changes: false },
  lua: { text: "#/matrix/sites: | lua a", changes: false },
  delete: { text: "#/matrix/sites: | delete", changes: true },
};

/**
 * In every run each sender calls one in this many endpoints, different ones per sender, and one in this many senders
 * sends each text; `npm run soak` runs all.
 */
const SHARE = 24;

const NO_PROOF = /must prove that no page of another site sent it/;
const untrusted = SENDERS.filter((sender) => !sender.isTrusted);
const trusted = SENDERS.filter((sender) => sender.isTrusted);

let world: World;
let session: string;

beforeAll(async () => {
  world = await openWorld();
  session = await world.signIn();
  await send(program(), {
    method: "POST",
    url: "/mxobject/mql",
    payload: "create class /matrix/sites (host varchar, size int, keys(host)) with autosearch=true",
  });
});
afterAll(() => world[Symbol.asyncDispose]());

function program(): Sender {
  const sender = SENDERS.find(({ name }) => name === "cookie, a program");
  if (sender === undefined) throw new RangeError("there is a program among the senders");
  return sender;
}

async function send(sender: Sender, options: InjectOptions & { readonly url: string }): Promise<string> {
  const response = await world.app.inject({ ...options, headers: { ...options.headers, ...sender.headers(session) } });
  return response.body;
}

function pathOf({ path }: Endpoint): string {
  return path.replace(/:\w+/g, "any").replace(/\*$/, "any@any");
}

/** All members that an endpoint knows, so that the one that triggers its action is present. */
function queryOf({ input }: Endpoint): string {
  const { properties = {} } = input as { readonly properties?: Readonly<Record<string, { readonly type?: string }>> };
  const members = Object.entries(properties).filter(([name]) => name !== "*");
  return new URLSearchParams(
    members.map(
      ([name, { type }]) => [name, type === "object" ? "{}" : type === "array" ? "[]" : "1"] as [string, string],
    ),
  ).toString();
}

/** The endpoints that the sender at that index calls. */
function endpointsOf(place: number): readonly Endpoint[] {
  return sharedOut(world.assembly.endpoints, place);
}

function sharedOut<T>(all: readonly T[], place: number): readonly T[] {
  return all.filter((_, at) => TIMES > 1 || (at + place) % SHARE === 0);
}

function isChange({ permission }: Endpoint): boolean {
  return permission !== "public" && !permission.endsWith(":read");
}

describe("every endpoint", () => {
  const calls = (endpoint: Endpoint): readonly (InjectOptions & { readonly url: string })[] => {
    const { method } = endpoint;
    const url = pathOf(endpoint);
    const inQuery = { method, url: `${url}?${queryOf(endpoint)}` };
    if (method === "GET") return [{ method, url }, inQuery];
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    return [inQuery, { method, url, headers, payload: queryOf(endpoint) }];
  };

  test.each(untrusted.map((sender, place) => [sender.name, sender, place] as const))(
    "%s: nothing is changed or run",
    async (_name, sender, place) => {
      for (const endpoint of endpointsOf(place)) {
        for (const call of calls(endpoint)) {
          const before = world.written();
          const answer = await send(sender, call);
          expect(world.written() - before, `${endpoint.method} ${call.url} wrote; it answered ${answer}`).toBe(0);
          if (isChange(endpoint)) expect(answer, `${endpoint.method} ${call.url}`).toMatch(NO_PROOF);
        }
      }
      expect(await send(program(), { url: "/host" }), "the session is still there").toContain(`"status":"ok"`);
    },
  );

  test.each(trusted.map((sender, place) => [sender.name, sender, place] as const))(
    "%s: nothing is refused for want of proof",
    async (_name, sender, place) => {
      // Ending the session, and long calls, would end the test. Reads need no proof.
      for (const endpoint of endpointsOf(place).filter(isChange)) {
        for (const call of calls(endpoint))
          expect(await send(sender, call), `${endpoint.method} ${call.url}`).not.toMatch(NO_PROOF);
      }
    },
  );

  test("a session in the query or in a form proves itself, whoever sends it beside a cookie", async () => {
    for (const [place, sender] of untrusted.entries()) {
      for (const endpoint of endpointsOf(place).filter(isChange)) {
        const { method } = endpoint;
        const url = pathOf(endpoint);
        expect(await send(sender, { method, url: `${url}?sessionid=${session}` }), `${method} ${url}`).not.toMatch(
          NO_PROOF,
        );
        // A raw body holds no parameters, and therefore no session.
        if (method === "GET" || endpoint.body === "raw") continue;
        const form = {
          method,
          url,
          headers: { "content-type": "application/x-www-form-urlencoded" },
          payload: `sessionid=${session}`,
        };
        expect(await send(sender, form), `${method} ${url}`).not.toMatch(NO_PROOF);
      }
    }
  });

  test("a preflight is never allowed", async () => {
    for (const endpoint of world.assembly.endpoints) {
      const headers = {
        origin: "https://evil.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "x-requested-with",
      };
      const response = await world.app.inject({ method: "OPTIONS", url: pathOf(endpoint), headers });
      expect(Object.keys(response.headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
    }
  });
});

describe("texts that decide what a call does", () => {
  interface Text extends Work {
    readonly name: string;
    readonly path: string;
    readonly field: string;
  }
  const texts: readonly Text[] = [
    ...Object.entries(STATEMENTS).map(([kind, work]) => ({
      name: `MQL ${kind}`,
      path: "/mxobject/mql",
      field: "mql",
      ...work,
    })),
    ...Object.entries(SEARCHES).map(([kind, work]) => ({
      name: `search ${kind}`,
      path: "/mxobject/search",
      field: "cond",
      ...work,
    })),
  ];
  const ways = ({ path, field, text }: Text): readonly (InjectOptions & { readonly url: string })[] => {
    const form = new URLSearchParams({ [field]: text }).toString();
    return [
      { method: "GET", url: `${path}?${form}` },
      { method: "POST", url: path, payload: form, headers: { "content-type": "application/x-www-form-urlencoded" } },
      {
        method: "POST",
        url: path,
        payload: JSON.stringify({ [field]: text }),
        headers: { "content-type": "application/json" },
      },
      { method: "POST", url: path, payload: text, headers: { "content-type": "text/plain" } },
    ];
  };

  test.each(texts.filter(({ changes }) => changes).map((text) => [text.name, text] as const))(
    "%s",
    async (_name, text) => {
      for (const way of ways(text)) {
        for (const sender of untrusted) {
          const before = world.written();
          expect(await send(sender, way), `${String(way.method)} by ${sender.name}`).toMatch(NO_PROOF);
          expect(world.written() - before, `${String(way.method)} by ${sender.name}`).toBe(0);
        }
      }
      for (const sender of trusted) {
        const answer = await send(sender, ways(text)[0] ?? { url: text.path });
        expect(answer, sender.name).not.toMatch(NO_PROOF);
        expect(answer, sender.name).toMatch(/"status":"ok"|"code":"(conflict|not_found)"/);
      }
    },
  );

  test("what only reads is answered to whoever may read", async () => {
    for (const [place, text] of texts.filter(({ changes }) => !changes).entries()) {
      for (const [at, way] of ways(text).entries()) {
        for (const sender of sharedOut(SENDERS, place + at))
          expect(await send(sender, way), `${text.name} by ${sender.name}`).not.toMatch(NO_PROOF);
      }
    }
  });

  test("the trail tells from where a statement or a search changed something", async () => {
    const works = [
      ["192.0.2.77", "/mxobject/mql", STATEMENTS.insert.text],
      ["192.0.2.78", "/mxobject/search", SEARCHES.delete.text],
    ] as const;
    for (const [remoteAddress, url, payload] of works) {
      await world.app.inject({ method: "POST", url, payload, remoteAddress, headers: program().headers(session) });
      const told = `select remote, outcome from /matrix/system/audit where remote='${remoteAddress}' limit 1`;
      expect(await send(program(), { method: "POST", url: "/mxobject/mql", payload: told })).toContain(
        `"remote":"${remoteAddress}"`,
      );
    }
  });

  test("a job is read by a link, and not run by one", async () => {
    const job = JSON.stringify({ name: "sites", dir: "common", host: ["nowhere"], exec: ["true"], timeout: 1 });
    await send(program(), {
      method: "POST",
      url: "/job",
      payload: job,
      headers: { "content-type": "application/json" },
    });
    const urls = ["/job/sites@common?param=%7B%7D", "/job/sites@common?receive_output=true", "/job/exec/sites@common"];
    for (const sender of untrusted) {
      const before = world.written();
      expect(await send(sender, { url: "/job/sites@common" })).toContain(`"exec":["true"]`);
      for (const url of urls) expect(await send(sender, { url }), `${url} by ${sender.name}`).toMatch(NO_PROOF);
      expect(world.written() - before).toBe(0);
    }
    for (const sender of trusted)
      expect(await send(sender, { url: "/job/exec/sites@common?param=%7B%7D" })).toContain(`"runid":`);
  });
});

describe("every WebSocket", () => {
  const answered = async (url: string, headers: Readonly<Record<string, string>>): Promise<string> => {
    const socket = new WebSocket(url, { headers });
    const opened = once(socket, "open").then(() => "open");
    const refused = once(socket, "unexpected-response").then(() => "refused");
    const answer = await Promise.race([opened, refused]);
    socket.on("error", () => {});
    socket.terminate();
    return answer;
  };

  test("opens for whoever could make a change, and for nobody else", async () => {
    const url = (await world.app.listen({ host: "127.0.0.1", port: 0 })).replace("http:", "ws:");
    expect(world.assembly.sockets.length).toBeGreaterThan(0);
    for (const { path, input } of world.assembly.sockets) {
      const address = url + path.replace(/:\w+/g, "any") + queryOf(path, input);
      for (const sender of SENDERS) {
        expect(await answered(address, sender.headers(session)), `${path} by ${sender.name}`).toBe(
          sender.isTrusted ? "open" : "refused",
        );
      }
      const own = { host: HOST, origin: "https://evil.example" };
      expect(await answered(`${address}&sessionid=${session}`, own)).toBe("open");
    }
  });

  /** The required input of the socket that is not in its path. */
  function queryOf(path: string, input: TSchema): string {
    const { required = [] } = input as TSchema & { readonly required?: readonly string[] };
    const missing = required.filter((member) => !path.includes(`:${member}`));
    return `?${missing.map((member) => `${member}=any`).join("&")}`;
  }
});
