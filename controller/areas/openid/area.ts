import type { Area } from "../../area.ts";
import { openidRoutes } from "./routes.ts";
import type { OpenIdService } from "./service.ts";

export function openidArea(openid: OpenIdService): Area {
  return { name: "openid", endpoints: openidRoutes(openid) };
}
