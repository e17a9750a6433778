//! The data of the demo fleet: real makes and models, toll plazas in the style of E-ZPass statements, violation
//! descriptions of New York's open data. People are invented.

/// Name, make, model, year, color, daily rate, deposit.
pub(super) const VEHICLES: [(&str, &str, &str, u16, &str, &str, &str); 25] = [
    ("White Model 3", "Tesla", "Model 3", 2023, "Pearl White", "89.50", "250"),
    ("Blue Model Y", "Tesla", "Model Y", 2024, "Deep Blue", "109", "300"),
    ("Red Corolla", "Toyota", "Corolla", 2022, "Barcelona Red", "44.99", "150"),
    ("Silver Camry", "Toyota", "Camry", 2023, "Celestial Silver", "54", "150"),
    ("Family Sienna", "Toyota", "Sienna", 2022, "Blueprint", "92.75", "250"),
    ("Trail RAV4", "Toyota", "RAV4", 2024, "Lunar Rock", "68", "200"),
    ("Big 4Runner", "Toyota", "4Runner", 2021, "Army Green", "97.25", "300"),
    ("Gray Civic", "Honda", "Civic", 2023, "Sonic Gray", "46.50", "150"),
    ("Black Accord", "Honda", "Accord", 2022, "Crystal Black", "56", "150"),
    ("Roomy Odyssey", "Honda", "Odyssey", 2023, "Platinum White", "88", "250"),
    ("City Fit", "Honda", "Fit", 2020, "Orange Fury", "36.90", "100"),
    ("Yellow Mustang", "Ford", "Mustang", 2023, "Triple Yellow", "119", "500"),
    ("Work F-150", "Ford", "F-150", 2022, "Oxford White", "99.99", "300"),
    ("Explorer XLT", "Ford", "Explorer", 2023, "Atlas Blue", "86", "250"),
    ("Transit 15", "Ford", "Transit", 2021, "Oxford White", "139", "400"),
    ("Topless Wrangler", "Jeep", "Wrangler", 2022, "Firecracker Red", "105", "350"),
    ("Grand Cherokee", "Jeep", "Grand Cherokee", 2023, "Velvet Red", "98.50", "300"),
    ("Suburban LT", "Chevrolet", "Suburban", 2022, "Black", "149", "400"),
    ("Bolt EV", "Chevrolet", "Bolt EV", 2023, "Ice Blue", "49", "150"),
    ("Kona Electric", "Hyundai", "Kona Electric", 2024, "Cyber Gray", "58.25", "150"),
    ("Santa Fe", "Hyundai", "Santa Fe", 2023, "Hampton Gray", "71", "200"),
    ("Kia Telluride", "Kia", "Telluride", 2024, "Wolf Gray", "94", "250"),
    ("BMW 330i", "BMW", "330i", 2022, "Portimao Blue", "112.40", "500"),
    ("Outback Wilderness", "Subaru", "Outback", 2023, "Geyser Blue", "73.50", "200"),
    ("Miata Roadster", "Mazda", "MX-5 Miata", 2022, "Soul Red", "95", "300"),
];

pub(super) const FIRST_NAMES: [&str; 20] = [
    "Ada",
    "Grace",
    "Katherine",
    "Dorothy",
    "Mary",
    "Annie",
    "Edith",
    "Radia",
    "Barbara",
    "Frances",
    "Alan",
    "Edsger",
    "Donald",
    "Ken",
    "Dennis",
    "Niklaus",
    "John",
    "Leslie",
    "Tony",
    "Robin",
];

pub(super) const LAST_NAMES: [&str; 10] =
    ["Okafor", "Nakamura", "Rossi", "Andersen", "Silva", "Kowalska", "Haddad", "Nguyen", "Murphy", "Castillo"];

pub(super) const LANGUAGES: [&str; 8] = ["en", "en", "en-US", "en-US", "es-US", "pt-BR", "zh-Hant", "fr"];

pub(super) const CHANNELS: [&str; 4] = ["website", "turo", "referral", "walk-in"];

pub(super) const ADDRESSES: [&str; 4] = [
    "JFK Terminal 4, Queens, NY",
    "EWR Terminal B, Newark, NJ",
    "60 Hudson St, New York, NY",
    "1 Hotel Brooklyn Bridge, Brooklyn, NY",
];

/// Agency, plaza, amount.
pub(super) const TOLLS: [(&str, &str, &str); 10] = [
    ("MTAB&T", "RFK", "6.94"),
    ("MTAB&T", "VNB", "6.94"),
    ("MTAB&T", "QMT", "6.94"),
    ("PANYNJ", "GWU", "16.06"),
    ("PANYNJ", "HOL", "14.06"),
    ("PANYNJ", "LIN", "14.06"),
    ("NJTP", "16E-11", "4.27"),
    ("GSP", "RAR", "2.19"),
    ("NYSTA", "B15", "1.75"),
    ("PATPK", "DRB", "8.40"),
];

/// What, fine, issuing agency.
pub(super) const VIOLATIONS: [(&str, &str, &str); 6] = [
    ("PHTO SCHOOL ZN SPEED VIOLATION", "50", "DEPARTMENT OF TRANSPORTATION"),
    ("NO PARKING-STREET CLEANING", "65", "TRAFFIC"),
    ("FAIL TO DSPLY MUNI METER RECPT", "35", "TRAFFIC"),
    ("NO STANDING-DAY/TIME LIMITS", "115", "TRAFFIC"),
    ("FIRE HYDRANT", "115", "TRAFFIC"),
    ("BUS LANE VIOLATION", "50", "DEPARTMENT OF TRANSPORTATION"),
];
