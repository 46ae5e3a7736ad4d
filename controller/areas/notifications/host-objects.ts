import { Type } from "typebox";
import { SCRIPT_MESSAGE_MAX_CHARACTERS } from "../../../common/limits.ts";
import { hostFunction, type HostObject } from "../../scripting/index.ts";
import { sendFrame } from "./sending.ts";
import type { Notifications } from "./types.ts";

/** The channels of `/websocket/<subject>` as `message`, and as `nats` for scripts that use that name. */
export function messageHostObjects(notifications: Pick<Notifications, "publish">): readonly HostObject[] {
  const summary = "Frames to those who listen at /websocket/<subject>";
  return [
    messageHostObject(notifications, { name: "message", summary }),
    messageHostObject(notifications, { name: "nats", summary: `${summary}, as message` }),
  ];
}

function messageHostObject(
  notifications: Pick<Notifications, "publish">,
  { name: object, summary }: Pick<HostObject, "name" | "summary">,
): HostObject {
  const text = (description: string) => Type.String({ description, maxLength: SCRIPT_MESSAGE_MAX_CHARACTERS });
  return {
    name: object,
    summary,
    functions: [
      hostFunction({
        name: "send",
        summary: "Sends a frame to all who listen to the subject; what is not listened to is not kept",
        parameters: [
          { name: "source", schema: text("Where it comes from; listeners may ask for one") },
          { name: "subject", schema: text("The channel") },
          { name: "title", schema: text("What it is about; listeners may ask for one") },
          { name: "msg", schema: Type.Unknown({ description: "Text; others as JSON" }) },
        ],
        returns: "nothing",
        example: `${object}.send("example", "news", "hello", { n: 1 })`,
        call: async ({ principal }, source, subject, title, msg) => {
          const body = typeof msg === "string" ? msg : JSON.stringify(msg);
          sendFrame(notifications, principal, { source, subject, title, msg: body });
          return undefined;
        },
      }),
    ],
  };
}
