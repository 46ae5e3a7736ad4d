export { fileRoutes } from "./routes.ts";
export { FileService } from "./service.ts";
