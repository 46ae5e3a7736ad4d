/** What really happened on the hosts: told by the simulated programs, not by what is being tested. */
export class Ledger {
  /** Job lines by host and id: how often each was begun. */
  readonly begun = new Map<string, number>();
  /** What jobs wrote before they ended by themselves. */
  readonly wrote = new Map<string, string>();
  /** Lines of daemons that the agent took: from then on they are safe. */
  readonly taken = new Set<string>();
  /** All lines that programs of policies printed. */
  readonly printed = new Set<string>();
  /** How many policies each agent was last told to work by, and has noted. */
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

  /** The agent is in a session of that epoch and has said so. */
  connected(host: string, epoch: number): void {
    this.#epochs.set(host, Math.max(epoch, this.#epochs.get(host) ?? 0));
  }

  /** A command is handed to the agent. */
  told(host: string, id: string, epoch: number): void {
    const key = `${host}/${id}`;
    if (epoch < (this.#epochs.get(host) ?? 0)) this.#outdated.add(key);
    else this.#outdated.delete(key);
  }
}
