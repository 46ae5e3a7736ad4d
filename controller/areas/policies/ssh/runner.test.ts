import { afterEach, beforeEach, expect, test } from "vitest";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { CommandPolicySpec } from "../../../../common/api/policies.ts";
import { PolicyStore } from "../store.ts";
import { SshPolicyRunner } from "./runner.ts";

const PATIENCE = { timeout: 60_000 };
const TENANT = "matrix";
const SPEC: CommandPolicySpec = {
  ...{ kind: "command", name: "p", rule: "/r", command: "run", ctype: 1, interval: 1, unit: "second" },
};

let engine: TestEngine;
let store: PolicyStore;
let ran: string[];
const states = new Map<string, Readonly<Record<string, string>>>();

beforeEach(async () => {
  engine = await openTestEngine();
  store = new PolicyStore(engine);
  ran = [];
});
afterEach(() => engine[Symbol.asyncDispose]());

/** A runner whose hosts record the runs. */
function runner(own: string): SshPolicyRunner {
  return new SshPolicyRunner({
    ...{ stores: engine, runtime: testRuntime(realClock), controllers: { own } },
    tenants: { list: () => Promise.resolve([{ name: TENANT }]) },
    hosts: {
      all: () =>
        Promise.resolve(
          new Map([
            ["h1", {}],
            ["h2", {}],
          ]),
        ),
      isOverSsh: () => Promise.resolve(true),
      depotVersion: () => Promise.resolve(undefined),
      notePolicies: (_tenant, host, noted) => Promise.resolve(void states.set(host, noted)),
      run: (_tenant, host, { line }) => {
        ran.push(`${own} ${host} ${line}`);
        return Promise.resolve({ host, state: "ok", code: 0, message: "", startedMs: 0, endedMs: 0 });
      },
    },
    entries: {
      told: () => Promise.resolve({ time: { us: 1, proof: "" }, rules: [] }),
      store: () => Promise.resolve(),
    },
    sent: { desired: (_tenant, host) => wantedOn(host) },
  });
}

async function wantedOn(host: string) {
  const { value } = await store.assignment(TENANT, host);
  const found = await Promise.all((value?.policies ?? []).map((name) => store.definition(TENANT, name)));
  const policies = found.map((one) => ({ name: one.value?.spec.name ?? "", revision: one.revision, spec: "" }));
  return { revision: 1, policies };
}

async function define(more: Partial<CommandPolicySpec> = {}): Promise<void> {
  const seen = await store.get(TENANT, "p");
  const definition = { spec: { ...SPEC, ...more }, createdMs: 1, changedMs: 1, creator: "ann" };
  await store.write(TENANT, "p", { seen, definition, targets: { hosts: [], deployed: true, tags: [] } });
}

async function assign(host: string, policies: readonly string[]): Promise<void> {
  const { revision: targetsRevision } = await store.targets(TENANT, "p");
  const seen = await store.assignment(TENANT, host);
  await store.assign(TENANT, { name: "p", targetsRevision, assignments: [{ host, seen, assignment: { policies } }] });
}

/** The kinds of runs since the last call, when there were some. */
async function next(expected: readonly string[]): Promise<void> {
  await expect.poll(() => [...new Set(ran.splice(0))].sort(), PATIENCE).toEqual(expected);
}

test("one of two controllers runs what is deployed as it is now, and the other takes over when it stops", async () => {
  await define();
  await assign("h1", ["p"]);
  const one = runner("a");
  one.start();
  await next(["a h1 run"]);
  const other = runner("b");
  other.start();
  await assign("h2", ["p"]);
  await define({ command: "changed" });
  await next(["a h1 changed", "a h2 changed"]);
  await one.stop();
  await next(["b h1 changed", "b h2 changed"]);
  await assign("h1", []);
  await expect.poll(() => states.get("h1"), PATIENCE).toEqual({});
  await other.stop();
});

test("a policy that needs an agent is not run, and is run once it needs none", async () => {
  await define({ isdaemon: true });
  await assign("h1", ["p"]);
  const only = runner("a");
  only.start();
  await expect.poll(async () => (await (await engine.system()).kv.get("policies/sshrunner")) !== undefined).toBe(true);
  await define();
  await next(["a h1 run"]);
  await only.stop();
});
