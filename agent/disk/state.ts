import { DesiredState } from "../../proto/gen/agent/v1/agent.ts";
import { AppError } from "../../common/errors.ts";
import type { Files } from "../../common/files.ts";
import { nodeFiles, readWhole, writeAtomically } from "./files.ts";

const FORMAT = 1;

/** Stores the desired state of this host, so that the agent can work without a controller. */
export class StateFile {
  readonly #path: string;
  readonly #files: Files;

  constructor(path: string, files = nodeFiles) {
    this.#path = path;
    this.#files = files;
  }

  /** Undefined before the first `store`. `AppError("unsupported")` when a newer agent has written the file. */
  async load(): Promise<DesiredState | undefined> {
    const bytes = await readWhole(this.#files, this.#path);
    if (!bytes) return undefined;
    if (bytes[0] !== FORMAT) throw new AppError("unsupported", `${this.#path} was written by a newer agent.`);
    return DesiredState.decode(bytes.subarray(1));
  }

  async store(state: DesiredState): Promise<void> {
    await writeAtomically(
      this.#files,
      this.#path,
      Buffer.concat([Buffer.of(FORMAT), DesiredState.encode(state).finish()]),
    );
  }
}
