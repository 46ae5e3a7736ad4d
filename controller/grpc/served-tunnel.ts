import { pipeline } from "node:stream";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { AppError, errorText, isAppError, type ErrorCode } from "../../common/errors.ts";
import { TUNNEL_ANSWER_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { TunnelFrame, TunnelOpened } from "../../proto/gen/agent/v1/agent.ts";
import type { OpenTunnel, TunnelRequest } from "../../proto/gen/peer/v1/peer.ts";
import type { PeerServices } from "./peer-stream.ts";
import { TunnelStream } from "./tunnel-stream.ts";

export type AgentTunnelCall = ServerDuplexStream<TunnelFrame, TunnelFrame>;
export type PeerTunnelCall = ServerDuplexStream<TunnelRequest, TunnelFrame>;
type Call<M> = ServerDuplexStream<M, TunnelFrame>;
type Message = (TunnelFrame | TunnelRequest) & { readonly refused?: AppError };

interface Served<M extends Message> {
  readonly clock: Clock;
  /** Receives the first frame; refuses the call by throwing. */
  readonly begin: (first: M["frame"], stream: TunnelStream) => void;
  readonly refuse: (code: ErrorCode, message: string) => void;
}

/** Serves an agent that delivers a requested connection, or the reason why there is none. */
export function serveAgentTunnel(
  call: AgentTunnelCall,
  {
    take,
    ...served
  }: Omit<Served<TunnelFrame>, "begin"> & { readonly take: (opened: TunnelOpened, stream: TunnelStream) => void },
): void {
  serve(call, {
    ...served,
    begin: (first, stream) => {
      if (first?.$case !== "opened")
        throw new AppError("invalid", "The first frame of a tunnel says how it was opened.");
      take(first.value, stream);
    },
  });
}

/** Serves another controller that opens a tunnel over an agent whose session is here. */
export function servePeerTunnel(
  call: PeerTunnelCall,
  { open, ...served }: Omit<Served<TunnelRequest>, "begin"> & { readonly open: PeerServices["tunnel"] },
): void {
  serve(call, {
    ...served,
    begin: (first, stream) => {
      if (first?.$case !== "open") throw new AppError("invalid", "The first frame of a tunnel says where it leads.");
      void join(call, { stream, place: first.value, open });
    },
  });
}

async function join(
  call: PeerTunnelCall,
  of: { readonly stream: TunnelStream; readonly place: OpenTunnel; readonly open: PeerServices["tunnel"] },
): Promise<void> {
  const { stream, place, open } = of;
  const over = new AbortController();
  stream.once("close", () => over.abort());
  const opened = (code: string, message: string): void =>
    void call.write({ frame: { $case: "opened", value: { id: "", code, message } } });
  try {
    const far = await open(place, over.signal);
    opened("", "");
    // If one side breaks, it breaks the other one, which reports its end.
    pipeline(stream, far, stream, () => undefined);
  } catch (error) {
    opened(isAppError(error) ? error.code : "internal", errorText(error));
    stream.destroy();
  }
}

function serve<M extends Message>(call: Call<M>, { clock, begin, refuse }: Served<M>): void {
  const stream = new TunnelStream(call);
  let isBegun = false;
  const fail = (code: ErrorCode, message: string): void => {
    refuse(code, message);
    stream.destroy();
  };
  const late = clock.after(TUNNEL_ANSWER_MS, () => fail("deadline", "Nothing came in time."));
  const first = (frame: M["frame"]): void => {
    isBegun = true;
    late();
    try {
      begin(frame, stream);
    } catch (error) {
      fail(isAppError(error) ? error.code : "internal", errorText(error));
    }
  };
  call.on("data", ({ frame, refused }: M) => {
    if (refused) stream.broken(refused);
    else if (isBegun) stream.receive(frame);
    else first(frame);
  });
  call.on("end", () => stream.ended());
  call.on("cancelled", () => stream.broken(new AppError("unavailable", "the connection to it was lost")));
  // A refusal is not an error of the stream.
  call.on("error", (error: unknown) => error instanceof Error && stream.broken(error));
  stream.once("close", late);
}
