import { eventually } from "../../helpers/programs/programs.ts";
import { Installation } from "../../e2e/installation.ts";
import { admissionOver } from "../../emulator/admission.ts";
import { EmulatedFleet } from "../../emulator/fleet.ts";
import { median, type Bench } from "../driver/frame.ts";
import { residentMb } from "../driver/process.ts";

/** Number of hosts with emulated agents; smaller for a trial. */
const HOSTS = Number(process.env["ODP_BENCH_HOSTS"] ?? 10_000);
const ROUNDS = 3;
const POLICY = "everywhere";
const LIMIT_MS = 10_000;
const REACHED_MAX_MS = 600_000;

/** Time from the change of a policy's target to the agent that is told last. Agents are emulated in this process. */
export const targetsBench: Bench = {
  name: "targets",
  async run() {
    const odp = await Installation.start({});
    const hosts = Array.from({ length: HOSTS }, (_, n) => `host-${n}`);
    const started = performance.now();
    const fleet = await EmulatedFleet.start(hosts, admissionOver(odp), () => ({}));
    try {
      const seconds = Math.round((performance.now() - started) / 1_000);
      const resident = Math.round(residentMb(odp.controller.pid));
      console.log(`  ${HOSTS} hosts enrolled and connected in ${seconds} s, ${resident} MB resident`);
      const policy = { name: POLICY, rule: "/matrix/rules/bench", ctype: 1, interval: 1, unit: "day", command: "true" };
      await odp.mql("create class /matrix/bench (a varchar, b varchar) with kind=record");
      const rule = "--class=/matrix/bench\n--parser=text\n--fields=a,b";
      await odp.ok("PUT", "/mxobject/rule", new URLSearchParams({ key: policy.rule, value: rule }));
      await odp.ok("POST", "/monitoring/policy", JSON.stringify({ ...policy, hosts: ["host-0"] }));
      const times: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        times.push(await reached(odp, fleet, `true ${round}`));
        await retarget(odp, { hosts: ["host-0"], command: "true" });
        await all(fleet, (commands, at) => (at === 0 ? commands === "true" : commands === undefined));
      }
      console.log(`  ${times.map(Math.round).join(", ")} ms`);
      return [
        {
          ...{ name: `a policy's target becomes ${HOSTS} hosts, until the last agent has it`, unit: "ms" },
          ...{ ours: median(times), against: LIMIT_MS, againstName: "limit", kind: "most", goal: 1 },
        },
      ];
    } finally {
      await fleet.stop();
      await odp.stop();
    }
  },
};

async function reached(odp: Installation, fleet: EmulatedFleet, command: string): Promise<number> {
  const began = performance.now();
  await retarget(odp, { hosts: ["host-*"], command });
  await all(fleet, (own) => own === command);
  return performance.now() - began;
}

async function retarget(odp: Installation, change: { hosts: readonly string[]; command: string }): Promise<void> {
  await odp.ok("PATCH", `/monitoring/policy/${POLICY}`, JSON.stringify(change));
}

/** Resolves when the command of the policy at each agent is as it should be; `undefined`: the agent has no such policy. */
async function all(fleet: EmulatedFleet, isRight: (command: string | undefined, at: number) => boolean): Promise<void> {
  await eventually(
    "every agent is told",
    REACHED_MAX_MS,
    async () =>
      fleet.agents.every(({ desired }, at) => {
        const spec = desired?.policies.find(({ name }) => name === POLICY)?.spec;
        return isRight(spec === undefined ? undefined : (JSON.parse(spec) as { command: string }).command, at);
      }) || undefined,
  );
}
