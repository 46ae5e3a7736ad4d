import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Installation } from "../../e2e/installation.ts";

/** An ordinary access log in the combined format, and an installation that follows it. */

export const ACCESS_CLASS = "/matrix/bench/access";

const AGENTS = [
  "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/130.0 Safari/537.36",
  "curl/8.5.0",
  "Mozilla/5.0 (iPhone; CPU iPhone OS 17_6 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1",
];
const STATUSES = [200, 200, 200, 304, 404, 200, 302, 500];

/** A line of about 200 bytes with `n` in it, so that a query can find it. */
export function combinedLine(n: number): string {
  const client = `10.${(n >> 10) & 3}.${(n >> 5) & 31}.${n & 255}`;
  const user = n % 5 === 0 ? "frank" : "-";
  const second = String(n % 60).padStart(2, "0");
  const request = `${n % 9 === 0 ? "POST" : "GET"} /catalogue/item/${n}?page=${n % 40} HTTP/1.1`;
  const referrer = n % 3 === 0 ? "-" : `https://www.example.com/catalogue/list?page=${n % 40}`;
  return `${client} - ${user} [21/Nov/2026:13:55:${second} +0000] "${request}" ${STATUSES[n % 8]} ${n} "${referrer}" "${AGENTS[n % 4]}"\n`;
}

export function combinedLines(from: number, count: number): string {
  return Array.from({ length: count }, (_, at) => combinedLine(from + at)).join("");
}

/**
 * A controller, an agent `web-1`, a record class of eleven columns with two indexes, and a policy that follows
 * `access.log` in the returned folder. `body` is the body of its rule.
 */
export async function followAccessLog(odp: Installation, body = ""): Promise<string> {
  const folder = join(odp.folder, "logs");
  await mkdir(folder);
  await odp.enrol("web-1");
  await odp.mql(
    `create class ${ACCESS_CLASS} (clientip varchar, ident varchar, auth varchar, timestamp varchar, verb varchar, request varchar, httpversion float, ` +
      "response int, bytes bigint, referrer varchar, agent varchar, index(clientip), index(response)) with kind='record'",
  );
  const rule = `--class=${ACCESS_CLASS}\n--parser=grok\n--pattern_1=%{COMBINEDAPACHELOG}\n${body}`;
  await odp.ok("PUT", "/mxobject/rule", new URLSearchParams({ key: "/matrix/rules/bench/access", value: rule }));
  const policy = {
    name: "access",
    rule: "/matrix/rules/bench/access",
    dir: folder,
    match: "^access\\.log$",
    hosts: ["web-1"],
  };
  await odp.ok("POST", "/monitoring/policy/log", JSON.stringify(policy));
  return folder;
}

/** A line with a unique client, by which a query finds it at once. The lines before it are stored before it. */
export function markedLine(n: number): string {
  return combinedLine(n).replace(/^\S+/, markOf(n));
}

export function markOf(n: number): string {
  return `192.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;
}

/** True once the marked line is stored as an object. */
export async function isThere(odp: Installation, n: number): Promise<boolean> {
  return (await odp.mql(`select bytes from ${ACCESS_CLASS} where clientip='${markOf(n)}' limit 1`)).length > 0;
}

export async function countOf(odp: Installation): Promise<number> {
  const [row] = await odp.mql(`select count(*) from ${ACCESS_CLASS}`);
  return Number(row?.["count"]);
}
