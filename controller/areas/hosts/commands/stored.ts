import type { CommandOutcome, OutputPiece, Target } from "../types.ts";
import { CommandRecords, type CommandRecordsDependencies } from "./records.ts";
import { endingOf } from "./wait.ts";

/** Commands that no caller waits for. Their outcome is read from the store. */
export class StoredCommands {
  readonly #records: CommandRecords;

  constructor(dependencies: CommandRecordsDependencies) {
    this.#records = new CommandRecords(dependencies);
  }

  /**
   * Returns the outcome that the agent reported; `undefined`: none yet. Passes on the output in order, each byte once.
   */
  async outcome(
    target: Target,
    commandId: string,
    onOutput?: (piece: OutputPiece) => void,
  ): Promise<CommandOutcome | undefined> {
    const result = await this.#records.result(target, commandId);
    if (onOutput) await this.#output(target, commandId, onOutput);
    return result && { host: target.host, startedMs: 0, endedMs: 0, ...endingOf(result) };
  }

  async #output(target: Target, commandId: string, onOutput: (piece: OutputPiece) => void): Promise<void> {
    let at = 0;
    for await (const { offset, stderr, data } of this.#records.output(target, commandId, 0)) {
      const fresh = data.subarray(Math.max(0, at - offset));
      if (fresh.length > 0) onOutput({ stderr, data: fresh });
      at = Math.max(at, offset + data.length);
    }
  }
}
