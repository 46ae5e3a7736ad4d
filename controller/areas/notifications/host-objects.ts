import { Type } from "typebox";
import { AppError } from "../../../common/errors.ts";
import { SCRIPT_MESSAGE_MAX_CHARACTERS } from "../../../common/limits.ts";
import { requirePermission } from "../permissions/index.ts";
import { hostFunction, type HostObject } from "../../scripting/index.ts";
import type { Notifications } from "./types.ts";

/** Frames of these tell of objects, each receiver what he may see: nobody else sends them. */
const OWN_SUBJECTS = new Set(["datachange", "deployment", "jobrun", "transfer"]);

/** `message`: the channels of `/websocket/<subject>`. */
export function messageHostObject(notifications: Pick<Notifications, "publish">): HostObject {
  const text = (description: string) => Type.String({ description, maxLength: SCRIPT_MESSAGE_MAX_CHARACTERS });
  return {
    name: "message",
    summary: "Frames to those who listen at /websocket/<subject>",
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
        example: 'message.send("example", "news", "hello", { n: 1 })',
        call: async ({ principal }, source, subject, title, msg) => {
          requirePermission(principal, "notifications:write");
          if (OWN_SUBJECTS.has(subject))
            throw new AppError("invalid", `Frames of ${subject} come from the platform: choose another subject.`);
          const body = typeof msg === "string" ? msg : JSON.stringify(msg);
          if (body.length > SCRIPT_MESSAGE_MAX_CHARACTERS)
            throw new AppError("too_large", `A frame has at most ${SCRIPT_MESSAGE_MAX_CHARACTERS} characters.`, {
              details: { limit: "SCRIPT_MESSAGE_MAX_CHARACTERS" },
            });
          const { tenant, ospace } = principal;

          notifications.publish(tenant, {
            keyspace: ospace,
            source,
            subject,
            title,
            reply: "",
            msg: body,
            about: undefined,
          });
          return undefined;
        },
      }),
    ],
  };
}
