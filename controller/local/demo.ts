import { accessSync, constants } from "node:fs";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errorText } from "../../common/errors.ts";
import { DEMO_DEADLINE_MS, DEMO_POLL_MS } from "../../common/limits.ts";
import { wait } from "../../common/time.ts";
import type { Assembly } from "../assembly.ts";
import { systemPrincipal, type Principal } from "../areas/permissions/index.ts";
import type { Settings } from "../settings/config.ts";
import { demoClasses, demoRules } from "./demo-definitions.ts";
import type { Runtime } from "../runtime.ts";

export interface DemonstrationOptions {
  readonly assembly: Assembly;
  readonly settings: Settings;
  readonly runtime: Runtime;
  /** The host whose agent runs beside the controller. */
  readonly host: string;
  /** The controller's own log, used if the system's log cannot be read. */
  readonly logPath: string;
}

const DEPOT = { name: "odp-demo", version: "1.0.0" } as const;
const SYSTEM_LOGS = ["/var/log/syslog", "/var/log/messages"];
/** Prints one line: host, load, percent of memory used. */
const SCRIPT = `#!/bin/sh
host=$(hostname)
if [ -r /proc/meminfo ]; then
  read -r load _ < /proc/loadavg
  memory=$(awk '/^MemTotal/ {t=$2} /^MemAvailable/ {a=$2} END {printf "%.1f", 100*(t-a)/t}' /proc/meminfo)
else
  load=$(uptime | sed 's/.*averages*: *//; s/[ ,].*//')
  memory=
fi
printf '%s,%s,%s\\n' "$host" "$load" "$memory"
`;

/**
 * Shows the main purpose of the program: classes, rules, a depot, a policy that runs a script on this host and one that
 * follows a log of this host. Everything is created through the services, as a user would, and again at every start.
 * `ODP_DEMO=0` turns it off.
 */
export class Demonstration {
  readonly #options: DemonstrationOptions;
  readonly #stopping = new AbortController();

  constructor(options: DemonstrationOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#stopping.abort();
  }

  /** Never throws: the controller works without the demonstration. */
  async run(say: (line: string) => void): Promise<void> {
    const { assembly, settings, runtime } = this.#options;
    try {
      const principal = systemPrincipal(settings.tenant, settings.ospace, "");
      await this.#prepare(principal);
      if (!settings.localAgent) return;
      await this.#until(() => assembly.hosts.isOnline(settings.tenant, this.#options.host));
      await this.#deploy(principal);
      const counts = await this.#firstRecords(principal);
      if (counts)
        say(
          `The demonstration works: ${counts.load} of load and ${counts.log} of log records have arrived. Ask for them:\n  ${this.#example()}\n`,
        );
    } catch (error) {
      if (!this.#stopping.signal.aborted)
        runtime.log.warn({ reason: errorText(error) }, "the demonstration could not be set up");
    }
  }

  async #prepare(principal: Principal): Promise<void> {
    const { objects, rules } = this.#options.assembly;
    const { ospace } = principal;
    const { load, systemLog, ownLog } = demoRules(ospace);
    for (const spec of demoClasses(ospace)) await objects.createClass(principal, spec, { ifNotExists: true });
    // Stored without a user: they run with the rights of the platform and need no user.
    const nobody = { ...principal, user: "" };
    await rules.put(nobody, `${ospace}/rules/demo/load`, load);
    await rules.put(nobody, `${ospace}/rules/demo/log`, this.#systemLog() ? systemLog : ownLog);
    await this.#prepareDepot(principal);
  }

  async #prepareDepot(principal: Principal): Promise<void> {
    const { depots } = this.#options.assembly;
    if (await depots.exists(principal, DEPOT.name, DEPOT.version)) return;
    const folder = await mkdtemp(join(this.#options.settings.dataDir, "demo-"));
    try {
      const path = join(folder, "load.sh");
      await writeFile(path, SCRIPT, { mode: 0o755 });
      const { size } = await stat(path);
      await depots.create(principal, { ...DEPOT, remark: "Part of the demonstration" }, [
        { filename: "load.sh", path, size },
      ]);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #deploy(principal: Principal): Promise<void> {
    const { policies } = this.#options.assembly;
    const { ospace } = principal;
    const hosts = [this.#options.host];
    const command = {
      kind: "command",
      command: "sh load.sh",
      ctype: 0,
      depotname: DEPOT.name,
      depotversion: DEPOT.version,
      interval: 5,
      unit: "second",
    } as const;
    await policies.save(principal, {
      hosts,
      spec: { ...command, name: "demo-load", rule: `${ospace}/rules/demo/load` },
    });
    const path = this.#systemLog() ?? this.#options.logPath;
    const match = `^${basename(path).replaceAll(".", "\\.")}(\\.\\d)?$`;
    await policies.save(principal, {
      hosts,
      spec: { kind: "log", name: "demo-log", rule: `${ospace}/rules/demo/log`, dir: dirname(path), match },
    });
  }

  async #firstRecords(principal: Principal): Promise<{ readonly load: number; readonly log: number } | undefined> {
    const count = async (name: string): Promise<number> => {
      const [row] = await this.#options.assembly.query.rows(
        principal,
        `select count(*) from ${principal.ospace}/demo/${name}`,
      );
      return Number(row?.["count"] ?? 0);
    };
    let counts: { load: number; log: number } | undefined;
    await this.#until(async () => {
      counts = { load: await count("load"), log: await count("log") };
      return counts.load > 0 && counts.log > 0;
    });
    return counts;
  }

  /** Repeats the check until it returns true, for at most `DEMO_DEADLINE_MS`. */
  async #until(isSo: () => boolean | Promise<boolean>): Promise<void> {
    const { clock } = this.#options.runtime;
    const endMs = clock.monotonicMs() + DEMO_DEADLINE_MS;
    while (!(await isSo())) {
      this.#stopping.signal.throwIfAborted();
      if (clock.monotonicMs() > endMs) throw new Error("the local agent's records did not arrive in time");
      await wait(clock, DEMO_POLL_MS, this.#stopping.signal);
    }
  }

  #systemLog(): string | undefined {
    return SYSTEM_LOGS.find(isReadable);
  }

  #example(): string {
    const { ospace } = this.#options.settings;
    return `node dist/odp.js mql "select host, load1, memory_used from ${ospace}/demo/load limit 5"`;
  }
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}
