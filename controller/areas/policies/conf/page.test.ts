import { afterAll, beforeAll, expect, test } from "vitest";
import { callExamples } from "../../../../test/helpers/runs/call-examples.ts";
import { multipart, openMonitoring } from "../../../../test/helpers/jobs/monitoring.ts";

/** The examples of `deploy/docs/deployments.md`, run in the order of the page. */

let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
let session: string;
beforeAll(async () => {
  monitoring = await openMonitoring();
  session = await monitoring.http.signIn("admin");
});
afterAll(() => monitoring[Symbol.asyncDispose]());

const FILES: Readonly<Record<string, string>> = { "check.sh": "#!/bin/sh\nuptime\n", "load.conf": "warn=4\n" };

async function bodyOf(more: string): Promise<object> {
  const json = /^ --json '(.*)'$/.exec(more)?.[1];
  if (json !== undefined) return { payload: JSON.parse(json) as object };
  const parts = [...more.matchAll(/ -F (\w+)=(\S+)/g)].map(([, name = "", value = ""]) => {
    const file = value.startsWith("@") ? value.slice(1) : undefined;
    return [name, file === undefined ? value : { name: file, content: FILES[file] ?? "" }] as const;
  });
  return parts.length === 0 ? {} : multipart(parts);
}

test("every example answers what the page shows", async () => {
  const all = await callExamples("deploy/docs/deployments.md");
  expect(all.length).toBeGreaterThan(10);
  for (const { line, url, more, answer, method = more === "" ? "GET" : "POST" } of all) {
    const is = await monitoring.http.call(session, { method: method as "GET", url, ...(await bodyOf(more)) });
    expect(is, line).toMatchObject(JSON.parse(answer) as object);
  }
});
