import { JOB_HOSTS_MAX } from "../../../common/limits.ts";
import { Installation } from "../../e2e/installation.ts";
import { admissionOver } from "../../emulator/admission.ts";
import type { EmulatedCommand, EmulatedEnd } from "../../emulator/agent.ts";
import { EmulatedFleet } from "../../emulator/fleet.ts";
import { median, quantile, type Bench, type Figure } from "../driver/frame.ts";
import { cpuSeconds, residentMb } from "../driver/process.ts";

/** Number of hosts; smaller for a trial. At most `JOB_HOSTS_MAX`, because one run has all of them. */
const HOSTS = Number(process.env["ODP_BENCH_HOSTS"] ?? 1_000);
const ROUNDS = 5;
const FIRST_BYTES = 300;

/** A run on many hosts at once, whose agents are emulated in this process, and a command on one of them. */
export const fleetBench: Bench = {
  name: "fleet",
  async run() {
    if (HOSTS > JOB_HOSTS_MAX) throw new Error(`ODP_BENCH_HOSTS is at most ${JOB_HOSTS_MAX}: a run has no more hosts.`);
    const odp = await Installation.start({});
    const hosts = Array.from({ length: HOSTS }, (_, n) => `host-${n}`);
    const started = performance.now();
    const fleet = await EmulatedFleet.start(hosts, admissionOver(odp), answer);
    console.log(
      `  ${HOSTS} hosts enrolled and connected in ${Math.round(performance.now() - started)} ms, ` +
        `${Math.round(residentMb(odp.controller.pid))} MB resident`,
    );
    try {
      return [await whole(odp, hosts), await firstByte(odp, hosts)];
    } finally {
      await fleet.stop();
      await odp.stop();
    }
  },
};

function answer({ host }: EmulatedCommand): EmulatedEnd {
  return { output: [`${host} is here\n`] };
}

async function whole(odp: Installation, host: readonly string[]): Promise<Figure> {
  await odp.ok("POST", "/job", JSON.stringify({ name: "all", dir: "bench", host, exec: "x", groupmode: "parallel" }));
  const times: number[] = [];
  const before = cpuSeconds(odp.controller.pid);
  for (let round = 0; round <= ROUNDS; round++) {
    const begun = performance.now();
    const path = `/job/exec/all@bench?receive_output=true&param=${encodeURIComponent("{}")}`;
    const text = String(await odp.ok("GET", path));
    times.push(performance.now() - begun);
    const missing = host.filter((name) => !text.includes(`${name} is here`));
    if (missing.length > 0) throw new Error(`${missing.length} hosts are not in the answer: ${missing[0]}.`);
  }
  const seconds = (cpuSeconds(odp.controller.pid) - before) / times.length;
  console.log(
    `  a run takes ${seconds.toFixed(2)} s of the controller's processor; ${times.map(Math.round).join(", ")} ms`,
  );
  return {
    ...{ name: `a run on ${host.length} emulated hosts, from the call to its answer`, unit: "ms" },
    ...{ ours: median(times.slice(1)), against: 3 * host.length, againstName: "limit", kind: "most", goal: 1 },
  };
}

/** Time from a call to the first line of its output at the caller. Commands run one by one on different hosts. */
async function firstByte(odp: Installation, hosts: readonly string[]): Promise<Figure> {
  const session = await odp.session();
  const times: number[] = [];
  for (let n = 0; n < FIRST_BYTES; n++) {
    const param = encodeURIComponent(JSON.stringify({ cmd: "x", "HOST!": hosts[n % hosts.length] }));
    const begun = performance.now();
    const answered = await fetch(
      `${odp.url}/job/exec/remote_command@system/common?stream=true&param=${param}&sessionid=${session}`,
    );
    const reader = answered.body!.getReader();
    for (let text = ""; !text.includes('"stdout"'); ) {
      const { value, done } = await reader.read();
      if (done) throw new Error("The command wrote nothing.");
      text += new TextDecoder().decode(value as Uint8Array);
    }
    times.push(performance.now() - begun);
    while (!(await reader.read()).done);
  }
  return {
    ...{ name: "a command's call to the first byte of its output at the caller, p95", unit: "ms" },
    ...{ ours: quantile(times, 0.95), against: 50, againstName: "limit", kind: "most", goal: 1 },
  };
}
