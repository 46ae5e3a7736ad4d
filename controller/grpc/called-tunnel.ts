import type { Duplex } from "node:stream";
import { status, type ClientDuplexStream } from "@grpc/grpc-js";
import { AppError, ERROR_CODES, errorText, type ErrorCode } from "../../common/errors.ts";
import { TUNNEL_ANSWER_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { TunnelFrame } from "../../proto/gen/agent/v1/agent.ts";
import type { TunnelRequest } from "../../proto/gen/peer/v1/peer.ts";
import type { TunnelPlace } from "../areas/hosts/index.ts";
import { TunnelStream } from "./tunnel-stream.ts";

export type TunnelCall = ClientDuplexStream<TunnelRequest, TunnelFrame>;

/** Opens a tunnel over an agent that another controller holds. Throws an `AppError` with the reason if it fails. */
export function calledTunnel(
  call: TunnelCall,
  place: TunnelPlace,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Duplex> {
  const stream = new TunnelStream(call);
  return new Promise((resolve, reject) => {
    let isOpen = false;
    const settle = (): void => {
      late();
      signal.removeEventListener("abort", aborted);
    };
    const refuse = (error: AppError): void => {
      settle();
      stream.destroy();
      call.cancel();
      reject(error);
    };
    const aborted = (): void => refuse(new AppError("cancelled", "The time was over before it was open."));
    const late = clock.after(TUNNEL_ANSWER_MS, () =>
      refuse(new AppError("deadline", `The controller of its agent did not answer within ${TUNNEL_ANSWER_MS} ms.`)),
    );
    call.on("data", ({ frame }: TunnelFrame) => {
      if (isOpen) return stream.receive(frame);
      if (frame?.$case !== "opened") return refuse(new AppError("invalid", "The tunnel was not opened."));
      const { code, message } = frame.value;
      if (code !== "") return refuse(new AppError(isErrorCode(code) ? code : "unavailable", message));
      isOpen = true;
      settle();
      resolve(stream);
    });
    call.on("error", (error) => (isOpen ? stream.broken(error) : refuse(callError(error))));
    call.on("end", () => stream.ended());
    if (signal.aborted) return aborted();
    signal.addEventListener("abort", aborted, { once: true });
    call.write({ frame: { $case: "open", value: place } });
  });
}

function isErrorCode(value: string): value is ErrorCode {
  return Object.hasOwn(ERROR_CODES, value);
}

function callError(error: Error): AppError {
  if ("code" in error && error.code === status.UNIMPLEMENTED)
    return new AppError("unsupported", "The controller that its agent is connected to is too old to lead anywhere.");
  return new AppError("unavailable", `The controller of its agent failed: ${errorText(error)}`, { cause: error });
}
