import { rm } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { documentedPath } from "../../controller/http/interface/document/names.ts";
import { EXAMPLE_CALLS } from "../../controller/http/interface/document/examples.ts";
import { openApiDocument } from "../../controller/http/interface/openapi.ts";
import { bundle } from "../helpers/programs/bundle.ts";
import { openWorld, type World } from "../security/world.ts";
import { DescribedAnswers, operationsOf, type Described, type OpenApi } from "./described.ts";
import { answerTo, type Sent } from "./described-calls.ts";
import { Story } from "./story.ts";

/** The example of each operation, sent as the document describes it, in the order of `EXAMPLE_CALLS`. */

let world: World;
let document: OpenApi;
let script: string;

beforeAll(async () => {
  script = await bundle("controller/script-worker.ts", `scripts/examples-${process.pid}.mjs`);
  world = await openWorld({ scripts: pathToFileURL(script) });
  document = openApiDocument(world.assembly.endpoints, { version: "test" }) as unknown as OpenApi;
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await rm(script, { force: true });
});

const PROBES = ["/healthz", "/readyz", "/metrics", "/openapi.json"];

test("every operation has an example, and no example is without an operation", () => {
  const named = Object.keys(EXAMPLE_CALLS).map((name) => {
    const [method = "", path = ""] = name.split(" ");
    return `${method} ${documentedPath(path)}`;
  });
  const operations = operationsOf(document).filter(({ path }) => !PROBES.includes(path));
  expect(named.sort()).toEqual(operations.map(({ method, path }) => `${method} ${path}`).sort());
});

interface Example {
  readonly name: string;
  readonly described: Described;
  readonly call: Pick<Sent, "method" | "path">;
}

function examples(): readonly Example[] {
  return Object.keys(EXAMPLE_CALLS).map((name) => {
    const [method = "", template = ""] = name.split(" ");
    const path = documentedPath(template);
    const described = document.paths[path]?.[method.toLowerCase()];
    if (described === undefined) throw new Error(`The document has no ${name}.`);
    return { name, described, call: { method, path } };
  });
}

test("every example is accepted, and answered as the document says", async () => {
  const answers = new DescribedAnswers(document);
  const story = new Story(world);
  const faults: string[] = [];
  for (const { name, described, call } of examples()) {
    const answer = await answerTo(world.app, described, { ...call, ...(await story.before(name)) });
    const fault = answers.faultOf(described, answer) ?? story.faultOf(name, answer);
    if (fault !== undefined) faults.push(`${name}: ${fault}`);
  }
  expect(faults).toEqual([]);
});

test("the document asks for a sign-in exactly where strangers are sent to it", async () => {
  const wrong: string[] = [];
  for (const { name, described, call } of examples()) {
    const { status } = await answerTo(world.app, described, { ...call, headers: {} });
    if ((status === 401) === (described.security?.length === 0)) wrong.push(`${name} ${String(status)}`);
  }
  expect(wrong).toEqual([]);
});
