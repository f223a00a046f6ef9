import { usePageTitle } from "../parts/title";

export default function SettingsPage() {
  usePageTitle("Settings");
  return (
    <div className="page">
      <h1>Settings</h1>
    </div>
  );
}
