export { openidArea } from "./area.ts";
export { openidRoutes } from "./routes.ts";
export { OpenIdService } from "./service.ts";
