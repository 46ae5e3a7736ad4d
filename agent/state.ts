import { readFile } from "node:fs/promises";
import { DesiredState } from "../proto/gen/agent/v1/agent.ts";
import { AppError } from "../common/errors.ts";
import { writeAtomically } from "./files.ts";

const FORMAT = 1;

/** What the controllers want this host to do, kept so that the agent works while they are away. */
export class StateFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Undefined before the first. */
  async load(): Promise<DesiredState | undefined> {
    let bytes: Buffer;
    try {
      bytes = await readFile(this.#path);
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
    if (bytes[0] !== FORMAT) throw new AppError("unsupported", `${this.#path} was written by a newer agent.`);
    return DesiredState.decode(bytes.subarray(1));
  }

  async store(state: DesiredState): Promise<void> {
    await writeAtomically(this.#path, Buffer.concat([Buffer.of(FORMAT), DesiredState.encode(state).finish()]));
  }
}
