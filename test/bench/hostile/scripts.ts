import { setTimeout as pause } from "node:timers/promises";
import { SCRIPT_LONG_RUN_MS, SCRIPT_LOOK_MS } from "../../../common/limits.ts";
import type { Installation } from "../../e2e/installation.ts";
import { quantile, type Figure } from "../driver/frame.ts";

const CALLS = 100;
const ENDLESS = 8;
/** The endless scripts have run for this time, of which each has had a part of a processor, before others are measured. */
const ENDLESS_SINCE_MS = 4 * (SCRIPT_LONG_RUN_MS + SCRIPT_LOOK_MS);
const PASSWORD = "a horse without a battery";
const CLASS = "/matrix/neighbour/row";

/** A user's trivial script and insert with a trigger, beside endless scripts of another user of the same tenant. */
export async function neighbourFigures(odp: Installation): Promise<readonly Figure[]> {
  const session = await neighbour(odp);
  const post = (path: string, type: string, body: string) => async (): Promise<number> => {
    const began = performance.now();
    const headers = { "content-type": type };
    const answer = await fetch(`${odp.url}${path}?sessionid=${session}`, { method: "POST", headers, body });
    const text = await answer.text();
    if (!text.startsWith('{"status":"ok"')) throw new Error(`${path}: ${text.slice(0, 1_000)}`);
    return performance.now() - began;
  };
  const works = {
    "a trivial script": post("/script/exec/js", "text/plain", "OUTPUT = 1;"),
    "an insert with a trigger": post("/mxobject/mql", "text/plain", `insert into ${CLASS} (n) values (1)`),
  };
  const figures: Figure[] = [];
  for (const [name, work] of Object.entries(works)) {
    await p95(work);
    const alone = await p95(work);
    const beside = await besideEndless(odp, () => p95(work));
    figures.push({
      name: `${name} beside ${ENDLESS} endless scripts of another user, p95`,
      unit: "ms",
      ours: beside,
      against: 2 * alone,
      againstName: "twice the same alone",
      kind: "most",
      goal: 1,
    });
  }
  return figures;
}

/** A session of a second administrator, with a class whose inserts run a trigger. */
async function neighbour(odp: Installation): Promise<string> {
  await odp.mql(`create class ${CLASS} (n int)`);
  const trigger = { class: CLASS, name: "before", script: "OBJECT.n = (OBJECT.n or 0) + 1", attr: { before: true } };
  await odp.ok("PUT", "/mxobject/trigger", JSON.stringify(trigger));
  const user = { parent: "/", username: "nora", passwd: PASSWORD, otype: "usr", isactive: true, isadmin: true };
  await odp.ok("POST", "/admin/users/new", JSON.stringify(user));
  const credentials = new URLSearchParams({ company: "matrix", username: "nora", password: PASSWORD });
  const answer = await fetch(`${odp.url}/user/signin`, { method: "POST", body: credentials });
  const told = (await answer.json()) as { readonly status: string; readonly message: unknown };
  if (told.status !== "ok") throw new Error(`Signing in: ${JSON.stringify(told)}`);
  return String(told.message);
}

async function besideEndless<T>(odp: Installation, work: () => Promise<T>): Promise<T> {
  const left = new AbortController();
  const url = `${odp.url}/script/exec/js?sessionid=${await odp.session()}`;
  const endless = Array.from({ length: ENDLESS }, () =>
    fetch(url, { method: "POST", body: "for (;;) {}", headers: { "content-type": "text/plain" }, signal: left.signal }),
  );
  const over = Promise.allSettled(endless);
  try {
    await pause(ENDLESS_SINCE_MS);
    return await work();
  } finally {
    left.abort();
    await over;
  }
}

async function p95(work: () => Promise<number>): Promise<number> {
  const times: number[] = [];
  for (let call = 0; call < CALLS; call++) times.push(await work());
  return quantile(times, 0.95);
}
