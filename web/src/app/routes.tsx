import { lazy } from "react";
import type { RouteObject } from "react-router";

// Every page is a chunk of its own: the first one is small, the editor comes when it is opened.
const Overview = lazy(() => import("./Overview"));
const Graders = lazy(() => import("../graders/GradersPage"));
const NewGrader = lazy(() => import("../graders/NewGrader"));
const NewGraderForm = lazy(() => import("../graders/NewGraderForm"));
const GraderPage = lazy(() => import("../graders/GraderPage"));
const EditGrader = lazy(() => import("../graders/EditGrader"));
const Runs = lazy(() => import("../runs/RunsPage"));
const Labels = lazy(() => import("../labels/LabelsPage"));
const Data = lazy(() => import("../data/DatasetsPage"));
const Settings = lazy(() => import("../settings/SettingsPage"));
const Missing = lazy(() => import("./Missing"));

/** What is in a project stands below `/p/PROJECT`; runs, environments and settings do not. */
export const routes: RouteObject[] = [
  { path: "/", element: <Overview /> },
  { path: "/p/:project/graders", element: <Graders /> },
  { path: "/p/:project/graders/new", element: <NewGrader /> },
  { path: "/p/:project/graders/new/:kind", element: <NewGraderForm /> },
  { path: "/p/:project/graders/:key", element: <GraderPage /> },
  { path: "/p/:project/graders/:key/edit", element: <EditGrader /> },
  { path: "/p/:project/labels", element: <Labels /> },
  { path: "/p/:project/datasets", element: <Data /> },
  { path: "/runs", element: <Runs /> },
  { path: "/settings", element: <Settings /> },
  { path: "*", element: <Missing /> },
];
