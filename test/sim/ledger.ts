/** The real events on the hosts, reported by the simulated programs and not by the code under test. */
export class Ledger {
  /** Job lines by host and id: how often each was started. */
  readonly begun = new Map<string, number>();
  /** Output of jobs that ended by themselves. */
  readonly wrote = new Map<string, string>();
  /** Lines of daemons that the agent took: from then on they must not be lost. */
  readonly taken = new Set<string>();
  /** All lines that programs of policies printed. */
  readonly printed = new Set<string>();
  /** Number of policies that each agent last received and recorded. */
  readonly policies = new Map<string, number>();
  readonly #epochs = new Map<string, number>();
  readonly #outdated = new Set<string>();
  readonly violations: string[] = [];
  #lines = 0;

  line(host: string, policy: string): string {
    const line = `${host}.${policy},${++this.#lines}`;
    this.printed.add(line);
    return line;
  }

  begin(host: string, id: string): void {
    const key = `${host}/${id}`;
    this.begun.set(key, (this.begun.get(key) ?? 0) + 1);
    if (this.begun.get(key) !== 1) this.violations.push(`${key} was begun twice`);
    if (this.#outdated.has(key)) this.violations.push(`${key} was begun by a command of an epoch that had passed`);
  }

  /** The agent has a session of that epoch and has reported it. */
  connected(host: string, epoch: number): void {
    this.#epochs.set(host, Math.max(epoch, this.#epochs.get(host) ?? 0));
  }

  /** A command is passed to the agent. */
  told(host: string, id: string, epoch: number): void {
    const key = `${host}/${id}`;
    if (epoch < (this.#epochs.get(host) ?? 0)) this.#outdated.add(key);
    else this.#outdated.delete(key);
  }
}
