import { gzipSync } from "node:zlib";
import { MIB } from "../../../common/limits/units.ts";
import type { Installation } from "../../e2e/installation.ts";
import { HOSTILE_BODIES, HOSTILE_TARGETS } from "../../security/hostile-bodies.ts";
import { HOSTILE_REQUESTS } from "../../security/hostile.ts";

/** A call intended to block the controller's thread or to use up its memory. */
export interface HostileCall {
  readonly name: string;
  readonly path: string;
  /** Absent: POST. */
  readonly method?: "GET" | "PUT" | "DELETE";
  /** Absent: JSON. */
  readonly type?: string;
  /** Content coding of the body, as its header states. */
  readonly coding?: "gzip";
  /** Made before the measurement, because some bodies have megabytes. */
  readonly body?: (odp: Installation) => string | Uint8Array | Promise<string | Uint8Array>;
  /** The caller closes the connection after this time. Absent: it waits for the end. */
  readonly patienceMs?: number;
  /** Creates the data that each call needs, such as objects to be deleted. */
  readonly before?: (odp: Installation) => Promise<unknown>;
}

/** Routes that do the same kind of work. Calls of one class are made in their order. */
export interface RouteClass {
  readonly name: string;
  readonly calls: readonly HostileCall[];
}

const TEXT = "text/plain";
/** Patience of callers of work in slices, which may take long. */
const PATIENCE_MS = 600;

export function many(count: number, one: (at: number) => string, between = ","): string {
  return Array.from({ length: count }, (_, at) => one(at)).join(between);
}

/** Bodies for routes with small bounds; most are refused before they are read. */
const PUBLIC: RouteClass = {
  name: "public routes",
  calls: [
    ...HOSTILE_TARGETS.filter(({ isSignedIn }) => !isSignedIn).flatMap(({ name, path, member }) =>
      HOSTILE_BODIES.filter(({ always }) => always).map(({ name: body, type, payload }) => ({
        name: `${body} to ${name}`,
        path,
        type,
        body: () => payload(member),
      })),
    ),
    {
      name: "a sign-in of 1,000 keys",
      path: "/user/signin",
      body: () => `{${many(1_000, (at) => `"${at}":1`)}}`.slice(0, 8_190),
    },
    { name: "/healthz with 7,000 fields", path: `/healthz?${"a&".repeat(7_000)}`, method: "GET" },
    { name: "the form of sign-in with 7,000 fields", path: `/user/signin?${"a&".repeat(7_000)}`, method: "GET" },
    {
      name: "a password of 8,000 signs to be judged",
      path: "/user/vali_password",
      type: TEXT,
      body: () => "aA1".repeat(2_600),
    },
    {
      name: "an enrolment with a request of 6,000 signs",
      path: "/agent/enrol",
      body: () => JSON.stringify({ id: "x".repeat(26), csr: "MIIB".repeat(1_500), proof: "A".repeat(44) }),
    },
    {
      name: "a gzip of 256 MiB of zeros to sign-in",
      path: "/user/signin",
      type: "application/x-www-form-urlencoded",
      coding: "gzip",
      body: () => gzipSync(Buffer.alloc(256 * MIB)),
    },
    { name: "a path of 15,000 signs", path: `/static/${"a/".repeat(7_500)}`, method: "GET" },
  ],
};

const BODIES: RouteClass = {
  name: "body decoders",
  calls: HOSTILE_TARGETS.filter(({ isSignedIn, isOfAll, takesLarge }) => isSignedIn && (isOfAll || takesLarge)).flatMap(
    ({ name, path, member, isOfAll }) =>
      HOSTILE_BODIES.filter(({ always }) => isOfAll || always).map(({ name: body, type, payload }) => ({
        name: `${body} to ${name}`,
        path,
        type,
        body: () => payload(member),
      })),
  ),
};

function queries(name: string, isOfClass: (request: (typeof HOSTILE_REQUESTS)[number]) => boolean): RouteClass {
  return {
    name,
    calls: HOSTILE_REQUESTS.filter(isOfClass).map(({ name: told, language, text, values, cursor }) => ({
      name: told,
      path: `/mxobject/${language}`,
      body: () =>
        language === "search"
          ? JSON.stringify({ cond: text() })
          : JSON.stringify({ mql: text(), values: values?.(), cursor: cursor?.() }),
      patienceMs: PATIENCE_MS,
    })),
  };
}

function script(name: string, text: string, patienceMs?: number): HostileCall {
  return { name, path: "/script/exec/js", type: TEXT, body: () => text, ...(patienceMs && { patienceMs }) };
}

const KEYS = "const o = {}; for (let n = 0; n < 300000; n++) o['k' + n] = n;";

const SCRIPTS: RouteClass = {
  name: "scripts",
  calls: [
    script("a script without an end", "for (;;) {}", PATIENCE_MS),
    script("OUTPUT of 300,000 keys", `${KEYS} OUTPUT = o;`),
    script("OUTPUT of 15,000,000 signs", "OUTPUT = 'x'.repeat(15000000);"),
    script("OUTPUT, 5,000 deep", "let o = 1; for (let n = 0; n < 5000; n++) o = [o]; OUTPUT = o;"),
    script("an error of 20,000,000 signs", "throw new Error('x'.repeat(20000000));"),
    script("odb.mql with 300,000 keys", `${KEYS} odb.mql('select * from /matrix/h/item limit 1', o);`),
    script("http.get with 300,000 keys", `${KEYS} http.get('http://127.0.0.1/', o);`),
    script("a backtracking pattern", "/(a+)+$/.test('a'.repeat(40) + 'b');", PATIENCE_MS),
    script(
      "host calls without a pause",
      "for (;;) odb.mql('select host from /matrix/h/item limit 1000');",
      PATIENCE_MS,
    ),
    script("log lines without a pause", "for (;;) console.log('x'.repeat(1000));", PATIENCE_MS),
    {
      name: "a rule tried on 20,000 lines",
      path: "/mxobject/rule/try",
      body: () =>
        JSON.stringify({
          pattern: "%{IP:a} %{WORD:b} %{NUMBER:c:int} %{GREEDYDATA:d}",
          lines: Array.from({ length: 20_000 }, (_, at) => `10.0.0.${at % 250} word${at} ${at} ${"rest ".repeat(20)}`),
        }),
    },
  ],
};

export const CALL_CLASSES: readonly RouteClass[] = [
  PUBLIC,
  BODIES,
  queries("MQL, reads", ({ language, by }) => language === "mql" && by !== "writer"),
  queries("MQL, writes", ({ by }) => by === "writer"),
  queries("search", ({ language }) => language === "search"),
  SCRIPTS,
];
