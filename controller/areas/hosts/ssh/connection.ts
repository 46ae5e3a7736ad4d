import { createHash } from "node:crypto";
import type { Duplex } from "node:stream";
import ssh2, { type Client, type ClientChannel, type ConnectConfig, type SFTPWrapper } from "ssh2";
import { AppError, errorText } from "../../../../common/errors.ts";
import { EXEC_PIPE_GRACE_MS, SSH_CONNECT_MS, SSH_KILL_GRACE_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { OutputPiece } from "../types.ts";
import { giftsText, type ScriptGifts, watchedScript } from "./shell.ts";

export interface SshAddress {
  readonly address: string;
  readonly port: number;
  readonly username: string;
  readonly password?: string;
  readonly privateKey?: string;
  readonly passphrase?: string;
}

/** A stream to the server through another host. */
export interface SshWay {
  readonly stream: Duplex;
  /** The jump host that carries the stream. */
  readonly proxy: string;
}

export interface SshConnectOptions {
  readonly clock: Clock;
  /** Absent: the controller connects to the server directly. */
  readonly way?: SshWay;
  /** Receives the key's fingerprint, `SHA256:…`. If it returns false or throws, the connection is refused. */
  readonly checkKey: (fingerprint: string) => Promise<boolean>;
  readonly signal: AbortSignal;
}

export interface ScriptEnd {
  /** Absent if a signal or the loss of the connection ended it. */
  readonly code: number | undefined;
  readonly signal: string | undefined;
}

export function fingerprintOf(key: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(key).digest("base64").replace(/=+$/, "")}`;
}

/** One SSH connection. Connection failures are `AppError("unavailable")` with the reason. */
export class SshConnection {
  readonly #client: Client;
  readonly #clock: Clock;

  private constructor(client: Client, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  static connect(to: SshAddress, options: SshConnectOptions): Promise<SshConnection> {
    const client = new ssh2.Client();
    return new Promise((resolve, reject) => {
      let keyError: unknown;
      const fail = (error: unknown) => {
        options.signal.removeEventListener("abort", aborted);
        client.destroy();
        reject(connectError(to, keyError ?? error, options.way));
      };
      const aborted = () => fail(new AppError("cancelled", "The time was over before the connection stood."));
      if (options.signal.aborted) return aborted();
      options.signal.addEventListener("abort", aborted, { once: true });
      client.on("error", fail);
      client.once("close", () => fail(new Error("The connection was closed.")));
      client.once("ready", () => {
        options.signal.removeEventListener("abort", aborted);
        resolve(new SshConnection(client, options.clock));
      });
      const checkKey = (key: Buffer, verify: (good: boolean) => void) => {
        options.checkKey(fingerprintOf(key)).then(verify, (error: unknown) => {
          keyError = error;
          verify(false);
        });
      };
      start(client, to, { checkKey, fail, way: options.way });
    });
  }

  /** Called when the connection is lost, but not after `close`. */
  onLost(listener: () => void): void {
    this.#client.once("close", listener);
  }

  /**
   * Opens a stream from the server to a place, named as the server knows it. Throws `AppError("unavailable")` with the
   * reason if the server refuses.
   */
  forward(to: Pick<SshAddress, "address" | "port">, signal: AbortSignal): Promise<ClientChannel> {
    return new Promise((resolve, reject) => {
      let isWanted = true;
      const refuse = (error: unknown): void => {
        isWanted = false;
        settle();
        reject(unavailable(forwardText(to, error), error));
      };
      const aborted = (): void => refuse(new Error("the time was over before it led there"));
      const late = this.#clock.after(SSH_CONNECT_MS, () => refuse(new Error(`no answer within ${SSH_CONNECT_MS} ms`)));
      const settle = (): void => {
        late();
        signal.removeEventListener("abort", aborted);
      };
      if (signal.aborted) return aborted();
      signal.addEventListener("abort", aborted, { once: true });
      try {
        this.#client.forwardOut("127.0.0.1", 0, to.address, to.port, (error, stream) => {
          if (error) return refuse(error);
          if (!isWanted) return stream.destroy();
          settle();
          resolve(stream);
        });
      } catch (error) {
        refuse(error);
      }
    });
  }

  /**
   * Runs a script with the host's `/bin/sh` in the user's home. When `signal` fires, the script and all its processes
   * are killed. All output is read, so the script never waits for a reader. A script that writes more than
   * `outputMaxBytes` is ended and fails with `AppError("too_large")`.
   */
  async run(
    script: string,
    options: ScriptGifts & {
      readonly signal: AbortSignal;
      readonly onOutput?: (piece: OutputPiece) => void;
      /** Absent: no limit. */
      readonly outputMaxBytes?: number;
    },
  ): Promise<ScriptEnd> {
    const { outputMaxBytes = Infinity } = options;
    const gifts = giftsText(options);
    let bytes = 0;
    let tooMuch = false;
    const end = await this.#exec(watchedScript(script), (stream) => {
      const take = (stderr: boolean) => (data: Buffer) => {
        bytes += data.length;
        if (bytes > outputMaxBytes) {
          tooMuch = true;
          stream.end();
        } else options.onOutput?.({ stderr, data });
      };
      stream.on("data", take(false));
      stream.stderr.on("data", take(true));
      stream.write(gifts);
      return this.#end(stream, options.signal);
    });
    if (tooMuch) throw new AppError("too_large", `A step on the host wrote more than ${outputMaxBytes} bytes.`);
    return end;
  }

  sftp(): Promise<SFTPWrapper> {
    return new Promise((resolve, reject) => {
      this.#client.sftp((error, sftp) =>
        error ? reject(unavailable(`SFTP is not offered: ${errorText(error)}`, error)) : resolve(sftp),
      );
    });
  }

  close(): void {
    this.#client.removeAllListeners("close");
    this.#client.end();
    this.#clock.after(SSH_KILL_GRACE_MS, () => this.#client.destroy());
  }

  /**
   * Calls `listen` in the turn in which the channel opens. The packet that opens the channel may also contain the end
   * of a short command, and an event is lost if it has no listener yet. The test "The end of a command that is over at
   * once" fails otherwise.
   */
  #exec<T>(command: string, listen: (stream: ClientChannel) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#client.exec(command, (error, stream) => {
        if (error) reject(unavailable(errorText(error), error));
        else listen(stream).then(resolve, reject);
      });
    });
  }

  #end(stream: ClientChannel, signal: AbortSignal): Promise<ScriptEnd> {
    return new Promise((resolve) => {
      const end: { code: number | undefined; signal: string | undefined } = { code: undefined, signal: undefined };
      const done = () => {
        signal.removeEventListener("abort", kill);
        this.#client.removeListener("close", done);
        resolve(end);
      };
      // Closing the input tells the watcher on the host to kill. If that does not help, the connection is closed.
      const kill = () => {
        stream.end();
        this.#clock.after(2 * SSH_KILL_GRACE_MS, done);
      };
      if (signal.aborted) kill();
      signal.addEventListener("abort", kill, { once: true });
      stream.on("exit", (code: number | null, name?: string) => {
        end.code = code ?? undefined;
        end.signal = name;
        // A process left running may keep the output open forever.
        this.#clock.after(EXEC_PIPE_GRACE_MS, done);
      });
      stream.on("close", done);
      this.#client.once("close", done);
    });
  }
}

interface Beginning {
  readonly checkKey: NonNullable<ConnectConfig["hostVerifier"]>;
  readonly fail: (error: unknown) => void;
  readonly way: SshWay | undefined;
}

function start(client: Client, to: SshAddress, { checkKey, fail, way }: Beginning): void {
  try {
    client.connect({
      host: to.address,
      port: to.port,
      username: to.username,
      readyTimeout: SSH_CONNECT_MS,
      keepaliveInterval: SSH_CONNECT_MS,
      hostVerifier: checkKey,
      ...(way && { sock: way.stream }),
      ...(to.password === undefined ? {} : { password: to.password }),
      ...(to.privateKey === undefined ? {} : { privateKey: to.privateKey }),
      ...(to.passphrase === undefined ? {} : { passphrase: to.passphrase }),
    });
    // Nagle's algorithm makes ssh2 up to a hundred times slower, at random.
    if (!way) client.setNoDelay(true);
  } catch (error) {
    fail(error);
  }
}

function connectError(to: SshAddress, error: unknown, way: SshWay | undefined): AppError {
  if (error instanceof AppError) return error;
  const through = way ? ` through ${way.proxy}` : "";
  return unavailable(`SSH to ${to.username}@${to.address}:${to.port}${through} failed: ${errorText(error)}`, error);
}

/** Reason code of RFC 4254, 5.1: the server's settings do not allow the channel. An operator can change that. */
const PROHIBITED = 1;

function forwardText({ address, port }: Pick<SshAddress, "address" | "port">, error: unknown): string {
  const isProhibited = error instanceof Error && "reason" in error && error.reason === PROHIBITED;
  const why = isProhibited ? "its server does not allow it (AllowTcpForwarding, PermitOpen)" : errorText(error);
  return `It does not lead to ${address}:${port}: ${why}`;
}

function unavailable(message: string, cause: unknown): AppError {
  return new AppError("unavailable", message, { cause });
}
